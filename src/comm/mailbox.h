// Frames that have arrived and wait for whoever asks for them.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "comm/transport.h"

namespace tera {

class Mailbox {
  public:
    void put(int from, Frame frame) { boxes_[{from, frame.header.group}].push_back(std::move(frame)); }
    std::optional<Frame> take(int from, std::uint64_t group) {
        const auto at = boxes_.find({from, group});
        if (at == boxes_.end() || at->second.empty()) return {};
        Frame frame = std::move(at->second.front());
        at->second.pop_front();
        return frame;
    }

  private:
    std::map<std::pair<int, std::uint64_t>, std::deque<Frame>> boxes_;
};

}  // namespace tera
