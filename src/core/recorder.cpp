#include "core/recorder.h"

#ifdef TERA_WITH_CUDA
#include "core/cuda/recordings.h"
#else
namespace tera {
struct Recorder::Recordings {};
}  // namespace tera
#endif

namespace tera {

#ifdef TERA_WITH_CUDA

struct Recorder::Recordings : cuda::Recordings {
    using cuda::Recordings::Recordings;
};

#endif

Recorder::Recorder([[maybe_unused]] const Engine& engine, [[maybe_unused]] std::size_t least_left) {
#ifdef TERA_WITH_CUDA
    if (engine.gpu()) recordings_ = std::make_unique<Recordings>(*engine.gpu(), least_left);
#endif
}
Recorder::~Recorder() = default;

Recorder::Outcome Recorder::run([[maybe_unused]] const Key& key, const std::function<void()>& give) {
#ifdef TERA_WITH_CUDA
    if (recordings_ && recordings_->play(key)) return Outcome::played;
    if (recordings_ && recordings_->record(key, give)) return Outcome::recorded;
#endif
    give();
    return Outcome::given;
}

}  // namespace tera
