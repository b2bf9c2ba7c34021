// A rank's sign of life: where it stands, and what its device was given.
#pragma once

#include "comm/packet.h"
#include "comm/progress.h"

namespace tera {

Packet beat_packet(const Progress::State& state);
Progress::State read_beat(Packet& packet);

}  // namespace tera
