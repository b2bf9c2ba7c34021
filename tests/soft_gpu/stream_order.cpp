#include "soft_gpu/stream_order.h"

#include <algorithm>

#include "soft_gpu/guard.h"
#include "soft_gpu/memory.h"

namespace soft_gpu {
namespace {

constexpr std::size_t most_queues = 256;

}  // namespace

StreamOrder::StreamOrder() : host_(most_queues, 0) { open(true); }

StreamOrder& StreamOrder::get() {
    static StreamOrder& only = *new StreamOrder;  // never destroyed: the program's last calls come when it ends
    return only;
}

StreamOrder::Queue StreamOrder::open(bool with_default) {
    auto at = std::find_if(queues_.begin(), queues_.end(), [](const OneQueue& q) { return !q.is_open; });
    if (at == queues_.end()) {
        if (queues_.size() == most_queues) throw Fault("more than " + std::to_string(most_queues) + " streams");
        at = queues_.emplace(at);
        at->known.resize(most_queues);
    }
    at->is_open = true;
    at->with_default = with_default;
    return static_cast<Queue>(at - queues_.begin());
}

void StreamOrder::close(Queue queue) { queues_[queue].is_open = false; }

void StreamOrder::join(Known& to, const Known& from) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

void StreamOrder::host_waits_for_all() {
    for (const OneQueue& q : queues_) join(host_, q.known);
}

void StreamOrder::begin(Queue queue, const char* name) {
    OneQueue& q = queues_[queue];
    join(q.known, host_);
    if (queue == default_queue) {
        for (const OneQueue& other : queues_)
            if (other.with_default) join(q.known, other.known);
    } else if (q.with_default) {
        join(q.known, queues_[default_queue].known);
    }
    if (q.count == largest_number) throw Fault("more work on one stream than is counted here");
    q.known[queue] = ++q.count;
    q.names.push_back(name);
    now_ = queue << number_bits | q.count;
    known_now_ = q.known.data();
}

std::string StreamOrder::name_of(Work work) const {
    return demangled(queues_[work >> number_bits].names[(work & largest_number) - 1]);
}

void StreamOrder::race(Work other, const char* did, bool write) const {
    throw Fault(std::string(write ? "write to" : "read of") + " memory that " + name_of(other) + " has " + did +
                " on another stream, and nothing says that it is over");
}

void StreamOrder::give_back(const Memory& memory) const {
    for (const Touched& t : memory.pieces_)
        for (const Work work : {t.wrote, t.read[0], t.read[1]})
            if (!is_over(work, host_))
                throw Fault("memory is given back, and nothing says that " + name_of(work) + " is over");
}

}  // namespace soft_gpu
