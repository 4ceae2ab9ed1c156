/* Writes a folder of pictures for the tests of the command: three classes that differ in their stripes, not
 * in their colours.
 *
 *     write_pictures FOLDER COUNT SIDE     FOLDER/cat/0.png, ... of COUNT pictures for each class */
#include "image_files.h"

#include <sys/stat.h>

#define LARGEST_SIDE 32

/* Lines across, lines down, or a chessboard, each two pixels wide. */
static int is_light(int class, int x, int y)
{
    return (class == 0 ? y / 2 : class == 1 ? x / 2 : (x / 2 + y / 2)) % 2;
}

static void write_one(const char *path, int class, int side)
{
    unsigned char pixels[LARGEST_SIDE * LARGEST_SIDE * 3];
    for (int i = 0; i < side * side * 3; i++)
        pixels[i] = (unsigned char)(60 + 80 * is_light(class, i / 3 % side, i / 3 / side) + rand() % 100);
    image_write_png(path, side, side, PNG_COLOR_TYPE_RGB, 8, PNG_INTERLACE_NONE, pixels);
}

int main(int count, char **arguments)
{
    static const char *const classes[] = {"cat", "dog", "rabbit"};
    static const unsigned char blue[] = {20, 40, 200};
    char path[512];
    if (count != 4 || atoi(arguments[3]) > LARGEST_SIDE)
        return 2;
    srand(7);
    mkdir(arguments[1], 0755);
    for (int class = 0; class < 3; class ++) {
        snprintf(path, sizeof path, "%s/%s", arguments[1], classes[class]);
        mkdir(path, 0755);
        for (int i = 0; i < atoi(arguments[2]); i++) {
            snprintf(path, sizeof path, "%s/%s/%d.png", arguments[1], classes[class], i);
            write_one(path, class, atoi(arguments[3]));
        }
    }
    image_write_jpeg("blue.jpg", 40, 20, 3, blue, 0);
    return 0;
}
