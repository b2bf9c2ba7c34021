// The CUDA half of core/recorder.h. No CUDA header is needed to include this.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

struct CUgraphExec_st;

namespace tera {

struct Gpu;

namespace cuda {

class Recordings {
  public:
    using Key = std::vector<std::uint64_t>;
    Recordings(Gpu& gpu, std::size_t least_left) : gpu_(gpu), least_left_(least_left) {}
    ~Recordings();
    Recordings(const Recordings&) = delete;
    Recordings& operator=(const Recordings&) = delete;

    /// False if there is none under the key.
    bool play(const Key& key);
    /// Records and plays what was asked for before under the same key. False if it was not, if there are enough, there
    /// is little memory left, or the driver cannot: then `give` has not been called.
    bool record(const Key& key, const std::function<void()>& give);

  private:
    static constexpr std::size_t most = 24, most_remembered = 64;

    Gpu& gpu_;
    std::size_t least_left_;
    bool able_ = true;
    std::map<Key, CUgraphExec_st*> recordings_;  ///< null: asked for once
};

}  // namespace cuda
}  // namespace tera
