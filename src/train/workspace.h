// The memory of a micro-batch: three arenas with the lifetimes a layer deals in (core/exec.h), on one pool of threads.
#pragma once

#include <cstddef>

#include "core/exec.h"

namespace tera {

class Workspace {
  public:
    explicit Workspace(ThreadPool& pool) : pool_(pool) {}

    Ctx ctx() { return {exec(keep_), exec(temp_), exec(redo_)}; }
    ThreadPool& pool() const { return pool_; }

    /// Gives everything back; to be called when a micro-batch is done.
    void reset() {
        keep_.reset();
        temp_.reset();
        redo_.reset();
    }
    std::size_t used() const { return keep_.used() + temp_.used() + redo_.used(); }
    std::size_t peak() const { return keep_.peak() + temp_.peak() + redo_.peak(); }

  private:
    Exec exec(Arena& arena) const { return {Device::cpu, &arena, &pool_}; }

    ThreadPool& pool_;
    Arena keep_, temp_, redo_;
};

}  // namespace tera
