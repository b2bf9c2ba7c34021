#include "io/decoder.h"

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace tera {
namespace {

/// The libraries count in 32 bits.
unsigned part_of(std::size_t size) {
    return static_cast<unsigned>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

class GzipDecoder : public Decoder {
  public:
    GzipDecoder() { TERA_CHECK(inflateInit2(&stream_, 15 + 16) == Z_OK, "zlib"); }  // 16: gzip, not zlib
    ~GzipDecoder() override { inflateEnd(&stream_); }

    Step decode(std::span<const char> in, std::span<char> out) override {
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
        stream_.avail_in = part_of(in.size());
        stream_.next_out = reinterpret_cast<Bytef*>(out.data());
        stream_.avail_out = part_of(out.size());
        const int status = inflate(&stream_, Z_NO_FLUSH);
        Step step;
        step.taken = part_of(in.size()) - stream_.avail_in;
        step.made = part_of(out.size()) - stream_.avail_out;
        step.member_ended = status == Z_STREAM_END;
        if (status == Z_MEM_ERROR) throw std::bad_alloc();
        if (status == Z_NEED_DICT) step.problem = "it needs a preset dictionary";
        if (status == Z_DATA_ERROR || status == Z_STREAM_ERROR)
            step.problem = stream_.msg != nullptr ? stream_.msg : "invalid data";
        return step;
    }
    void restart() override { TERA_CHECK(inflateReset(&stream_) == Z_OK, "zlib"); }

  private:
    z_stream stream_{};
};

class ZstdDecoder : public Decoder {
  public:
    ZstdDecoder() : stream_(ZSTD_createDStream()) {
        if (stream_ == nullptr) throw std::bad_alloc();
        ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, window_log);
    }
    ~ZstdDecoder() override { ZSTD_freeDStream(stream_); }

    Step decode(std::span<const char> in, std::span<char> out) override {
        ZSTD_inBuffer input{in.data(), in.size(), 0};
        ZSTD_outBuffer output{out.data(), out.size(), 0};
        const std::size_t status = ZSTD_decompressStream(stream_, &output, &input);
        Step step;
        step.taken = input.pos;
        step.made = output.pos;
        step.member_ended = status == 0;
        if (ZSTD_isError(status)) step.problem = ZSTD_getErrorName(status);
        return step;
    }
    void restart() override { ZSTD_DCtx_reset(stream_, ZSTD_reset_session_only); }

  private:
    static constexpr int window_log = 28;
    static_assert(std::int64_t{1} << window_log == decoder_memory_limit);
    ZSTD_DStream* stream_;
};

class XzDecoder : public Decoder {
  public:
    XzDecoder() { restart(); }
    ~XzDecoder() override { lzma_end(&stream_); }

    Step decode(std::span<const char> in, std::span<char> out) override {
        stream_.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
        stream_.avail_in = in.size();
        stream_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
        stream_.avail_out = out.size();
        const lzma_ret status = lzma_code(&stream_, LZMA_RUN);
        Step step;
        step.taken = in.size() - stream_.avail_in;
        step.made = out.size() - stream_.avail_out;
        step.member_ended = status == LZMA_STREAM_END;
        step.problem = problem_of(status);
        return step;
    }
    void restart() override {
        const lzma_ret status = lzma_stream_decoder(&stream_, decoder_memory_limit, LZMA_TELL_UNSUPPORTED_CHECK);
        if (status != LZMA_OK) throw std::bad_alloc();
    }

  private:
    static const char* problem_of(lzma_ret status) {
        switch (status) {
            case LZMA_OK:
            case LZMA_STREAM_END:
            case LZMA_BUF_ERROR:  // nothing to do with what it was given
                return nullptr;
            case LZMA_MEM_ERROR:
                throw std::bad_alloc();
            case LZMA_MEMLIMIT_ERROR:
                return "it needs more than 256 MB to unpack; pack it again with a smaller dictionary";
            case LZMA_FORMAT_ERROR:
                return "it is not xz";
            case LZMA_OPTIONS_ERROR:
            case LZMA_UNSUPPORTED_CHECK:
                return "it uses a feature of xz that is not supported";
            default:
                return "invalid data";
        }
    }
    lzma_stream stream_ = LZMA_STREAM_INIT;
};

class Bzip2Decoder : public Decoder {
  public:
    Bzip2Decoder() { begin(); }
    ~Bzip2Decoder() override { BZ2_bzDecompressEnd(&stream_); }

    Step decode(std::span<const char> in, std::span<char> out) override {
        stream_.next_in = const_cast<char*>(in.data());
        stream_.avail_in = part_of(in.size());
        stream_.next_out = out.data();
        stream_.avail_out = part_of(out.size());
        const int status = BZ2_bzDecompress(&stream_);
        Step step;
        step.taken = part_of(in.size()) - stream_.avail_in;
        step.made = part_of(out.size()) - stream_.avail_out;
        step.member_ended = status == BZ_STREAM_END;
        if (status == BZ_MEM_ERROR) throw std::bad_alloc();
        if (status == BZ_DATA_ERROR_MAGIC) step.problem = "it is not bzip2";
        if (status == BZ_DATA_ERROR || status == BZ_PARAM_ERROR) step.problem = "invalid data";
        return step;
    }
    void restart() override {
        BZ2_bzDecompressEnd(&stream_);
        begin();
    }

  private:
    void begin() {
        stream_ = {};
        if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) throw std::bad_alloc();
    }
    bz_stream stream_{};
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(Packing packing) {
    switch (packing) {
        case Packing::gzip:
            return std::make_unique<GzipDecoder>();
        case Packing::zstd:
            return std::make_unique<ZstdDecoder>();
        case Packing::xz:
            return std::make_unique<XzDecoder>();
        case Packing::bzip2:
            return std::make_unique<Bzip2Decoder>();
        case Packing::plain:
            break;
    }
    TERA_CHECK(false, "plain bytes need no decoder");
    return nullptr;
}

}  // namespace tera
