#include "core/thread_pool.h"

#include <algorithm>
#include <cstdlib>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tera {
namespace {

thread_local bool inside_task = false;

// Ops follow each other within microseconds; spinning that long spares a sleep and a wake-up per op.
constexpr int spin_rounds = 4000;

void pause_briefly() {
#if defined(__x86_64__)
    _mm_pause();
#endif
}

}  // namespace

int ThreadPool::default_size() {
    if (const char* text = std::getenv("OMP_NUM_THREADS")) {
        int n = std::atoi(text);
        if (n > 0) return n;
    }
    return std::max(1u, std::thread::hardware_concurrency());
}

ThreadPool::ThreadPool(int threads) {
    int n = threads > 0 ? threads : default_size();
    for (int i = 1; i < n; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
    {
        std::lock_guard lock(mutex_);
        stop_ = true;
        generation_.fetch_add(1);
    }
    wake_.notify_all();
    for (auto& t : workers_) t.join();
}

void ThreadPool::do_tasks() {
    bool outer = inside_task;
    inside_task = true;
    for (std::int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < tasks_;) {
        try {
            call_(object_, i);
        } catch (...) {
            std::lock_guard lock(mutex_);
            if (!failure_) failure_ = std::current_exception();
            next_.store(tasks_);
        }
    }
    inside_task = outer;
}

void ThreadPool::work() {
    std::uint64_t seen = 0;
    for (;;) {
        for (int i = 0; i < spin_rounds && generation_.load(std::memory_order_acquire) == seen; ++i) pause_briefly();
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [&] { return generation_.load() != seen; });
            seen = generation_.load();
            if (stop_) return;
            if (!open_) continue;  // the caller finished that job alone
            ++active_;
        }
        do_tasks();
        {
            std::lock_guard lock(mutex_);
            --active_;
        }
        idle_.notify_one();
    }
}

void ThreadPool::run_erased(std::int64_t tasks, Call call, const void* object) {
    if (tasks <= 0) return;
    if (tasks == 1 || workers_.empty() || inside_task) {
        for (std::int64_t i = 0; i < tasks; ++i) call(object, i);
        return;
    }
    {
        std::lock_guard lock(mutex_);
        call_ = call;
        object_ = object;
        tasks_ = tasks;
        next_.store(0);
        failure_ = nullptr;
        open_ = true;
        generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    do_tasks();
    std::exception_ptr failure;
    {
        std::unique_lock lock(mutex_);
        open_ = false;
        idle_.wait(lock, [&] { return active_ == 0; });
        failure = failure_;
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace tera
