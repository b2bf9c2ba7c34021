// Which work of the device comes after which. Here everything is done when its call returns; on a GPU, work on
// different streams goes side by side unless an event or the host stands between. So every piece of memory remembers
// who touched it last, and an access must come after those before it by such a chain, not by the order of the calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace soft_gpu {

class StreamOrder {
  public:
    /// One piece of work: its queue in the upper bits, its number there in the lower ones. 0: none.
    using Work = std::uint32_t;
    /// Up to which work of each queue something is known to be over.
    using Known = std::vector<std::uint32_t>;
    using Queue = std::uint32_t;

    static constexpr Queue default_queue = 0;
    static constexpr std::size_t piece = 16;  ///< bytes that are remembered together

    /// What is remembered of a piece of memory: the last writer, and two readers since.
    struct Touched {
        Work wrote = 0;
        std::array<Work, 2> read{};
    };
    /// Of an allocation.
    class Memory {
      public:
        explicit Memory(std::size_t bytes = 0) : pieces_((bytes + piece - 1) / piece) {}
        void clear() { pieces_.assign(pieces_.size(), {}); }

      private:
        friend class StreamOrder;
        std::vector<Touched> pieces_;
    };

    static StreamOrder& get();

    /// A stream; with_default: it waits for the default one, and that for it.
    Queue open(bool with_default);
    void close(Queue queue);

    /// Work on a queue, as long as it lives; all memory is touched by it meanwhile.
    class Working {
      public:
        Working(Queue queue, const char* name) { get().begin(queue, name); }
        ~Working() { get().now_ = 0; }
        Working(const Working&) = delete;
        Working& operator=(const Working&) = delete;
    };

    const Known& known_on(Queue queue) const { return queues_[queue].known; }
    void wait(Queue queue, const Known& known) { join(queues_[queue].known, known); }
    void host_waits(const Known& known) { join(host_, known); }
    void host_waits_for_all();

    /// By the work under way, if there is any. A Fault if it may come before what was done there, or at the same time.
    void touch(Memory& memory, std::size_t offset, std::size_t bytes, bool write) {
        if (now_ == 0) return;
        for (std::size_t i = offset / piece; i <= (offset + bytes - 1) / piece; ++i) {
            Touched& t = memory.pieces_[i];
            if (!over(t.wrote)) race(t.wrote, "written", write);
            if (write) {
                for (const Work reader : t.read)
                    if (!over(reader)) race(reader, "read", write);
                t = {now_, {}};
            } else {
                t.read[over(t.read[0]) ? 0 : 1] = now_;
            }
        }
    }
    /// A Fault if the host does not know that work on it is over.
    void give_back(const Memory& memory) const;

  private:
    static constexpr unsigned number_bits = 24;
    static constexpr std::uint32_t largest_number = (1u << number_bits) - 1;

    struct OneQueue {
        bool is_open = false, with_default = false;
        std::uint32_t count = 0;
        Known known;
        std::vector<const char*> names;  ///< of its work
    };

    static void join(Known& to, const Known& from);
    static bool is_over(Work work, const Known& known) { return known[work >> number_bits] >= (work & largest_number); }
    bool over(Work work) const { return known_now_[work >> number_bits] >= (work & largest_number); }
    void begin(Queue queue, const char* name);
    [[noreturn]] void race(Work other, const char* did, bool write) const;
    std::string name_of(Work work) const;

    StreamOrder();
    std::vector<OneQueue> queues_;
    Known host_;
    Work now_ = 0;
    const std::uint32_t* known_now_ = nullptr;
};

}  // namespace soft_gpu
