/* Sigma trains neural networks from C. This is the one header that a program includes. */
#ifndef SIGMA_SIGMA_H
#define SIGMA_SIGMA_H

#include <sigma/checkpoint.h>
#include <sigma/criteria.h>
#include <sigma/data.h>
#include <sigma/diagnostics.h>
#include <sigma/environment.h>
#include <sigma/export.h>
#include <sigma/generate.h>
#include <sigma/graph.h>
#include <sigma/handler.h>
#include <sigma/hook.h>
#include <sigma/hooks.h>
#include <sigma/log.h>
#include <sigma/metrics.h>
#include <sigma/model.h>
#include <sigma/monitor.h>
#include <sigma/network.h>
#include <sigma/onnx.h>
#include <sigma/op.h>
#include <sigma/operations.h>
#include <sigma/operator.h>
#include <sigma/paths.h>
#include <sigma/persistence.h>
#include <sigma/registry.h>
#include <sigma/rule.h>
#include <sigma/search.h>
#include <sigma/status.h>
#include <sigma/task.h>
#include <sigma/tensor.h>
#include <sigma/text.h>
#include <sigma/time.h>
#include <sigma/training.h>
#include <sigma/units.h>

#endif
