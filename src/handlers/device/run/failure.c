/* Turns a failure of a driver into an error of the library, with the names of the driver and the device in
 * front.
 *
 * A source that the compiler refuses is a fault of ours, not of the user, and the message says so.
 */
#include "handlers/device/run/device.h"

sgm_status(sgm__device_fail)(const sgm__device *device, sgm_device_result result, const char *message)
{
    sgm_status status = result == SGM_DEVICE_MEMORY   ? SGM_ERROR_MEMORY
                        : result == SGM_DEVICE_ABSENT ? SGM_ERROR_UNSUPPORTED
                                                      : SGM_ERROR_STATE;
    const char *what = result == SGM_DEVICE_SOURCE ? "its compiler refuses our source: " : "";
    return sgm_fail(status, "%s '%s': %s%s", device->driver->name, device->info.name, what, message);
}
