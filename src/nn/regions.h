// The ranks that share out a layer.
#pragma once

#include "nn/cp_region.h"
#include "nn/tp_region.h"

namespace tera {

struct Regions {
    TpRegion tp = {};
    CpRegion cp = {};
};

}  // namespace tera
