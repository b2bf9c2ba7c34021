// A pool of threads that shares out numbered pieces of work.
//
// How the work is cut never depends on how many threads there are, so results are the same bits for 1 thread and for
// N. Calls from inside a task run inline.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tera {

class ThreadPool {
  public:
    /// threads counts the caller too; 0 asks the machine (honouring OMP_NUM_THREADS).
    explicit ThreadPool(int threads = 0);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int size() const { return static_cast<int>(workers_.size()) + 1; }

    /// Calls f(i) once for every i in [0, tasks), on all threads; returns when all are done. The first exception thrown
    /// by a task is thrown again here.
    template <class F>
    void run(std::int64_t tasks, const F& f) {
        run_erased(
            tasks, [](const void* object, std::int64_t i) { (*static_cast<const F*>(object))(i); }, &f);
    }

    static int default_size();

  private:
    using Call = void (*)(const void*, std::int64_t);
    void run_erased(std::int64_t tasks, Call call, const void* object);
    void work();
    void do_tasks();

    std::mutex mutex_;
    std::condition_variable wake_, idle_;
    std::atomic<std::uint64_t> generation_{0};
    bool open_ = false, stop_ = false;
    int active_ = 0;
    Call call_ = nullptr;
    const void* object_ = nullptr;
    std::int64_t tasks_ = 0;
    std::atomic<std::int64_t> next_{0};
    std::exception_ptr failure_;
    std::vector<std::thread> workers_;
};

}  // namespace tera
