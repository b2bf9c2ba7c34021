// What is saved is loaded, to the bit; and nothing is loaded that is not what it should be.
#include "train/checkpoint.h"

#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <fstream>

#include "io/json_file.h"
#include "io/safetensors.h"
#include "support/expect_usage_error.h"
#include "support/fake_model.h"
#include "support/model_configs.h"
#include "support/temp_folder.h"
#include "train/checkpoint_state.h"

namespace tera {
namespace {
namespace fs = std::filesystem;

CheckpointState state_at(std::int64_t iteration) {
    CheckpointState s;
    s.iteration = iteration;
    s.consumed_train_samples = 8 * iteration;
    s.consumed_valid_samples = 3 * iteration;
    s.skipped_train_samples = 7;
    s.floating_point_operations = 1.25e21;
    s.seed = 0xffffffffffffffffu;
    s.scheduler = {{"num_steps", 800}, {"max_lr", 0.1 + 0.2}};
    s.loss_scaler = {{"scale", 65536.0}};
    s.optimizer = {{"step", iteration}};
    s.arguments = {{"num_layers", 2}, {"lr", 6e-4}, {"nothing", nullptr}};
    return s;
}

SaveReport save(const FakeModel& model, const std::string& folder, std::int64_t iteration, SaveOptions options = {}) {
    const CheckpointState state = state_at(iteration);
    options.folder = folder;
    return save_checkpoint({model.config(), model.params(), model.optimizer(), {{"vocab.json", "{}"}}, 52, state},
                           options);
}

LoadResult load(const std::string& folder, const FakeModel& into, LoadOptions options = {}) {
    return load_checkpoint(find_checkpoint(folder).value(), into.target(), options);
}

std::vector<float> floats_of(const std::string& path, const std::string& name) {
    const SafetensorsFile file(path);
    std::vector<float> out(file.find(name)->bytes / 4);
    file.read(*file.find(name), 0, std::as_writable_bytes(std::span(out)));
    return out;
}

void flip_bit(const std::string& path, std::uint64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(file.get() ^ 0x10);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
}

TEST(Checkpoint, ComesBackToTheBitInEveryArchitectureAndDType) {
    for (const ModelConfig& config :
         {tiny_gpt2(), tiny_llama(), tiny_qwen2(), tiny_qwen3(), tiny_starcoder2(), tiny_nemotron(), tiny_unnamed()}) {
        for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
            SCOPED_TRACE(cat(class_name_of(choose_architecture(config)), " ", name_of(dtype)));
            TempFolder folder{TempFolder::Where::memory};
            const FakeModel model(config, dtype, 5), back(config, dtype, 0);
            save(model, folder.path(), 100);
            const LoadResult result = load(folder.path(), back);
            EXPECT_TRUE(result.optimizer_loaded);
            EXPECT_EQ(model.first_difference(back), "");
            EXPECT_TRUE(result.notices.empty()) << result.notices[0];
        }
    }
}

TEST(Checkpoint, StateComesBackToTheBit) {
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel model(tiny_gpt2(), DType::f32, 5);
    const SaveReport report = save(model, folder.path(), 100);
    EXPECT_EQ(report.path, folder / "iter_0000100");
    EXPECT_EQ(read_text_file(folder / "latest_checkpointed_iteration.txt"), "100");
    const CheckpointState expected = state_at(100);
    const CheckpointState s = load(folder.path(), FakeModel(tiny_gpt2(), DType::f32, 0)).state;
    EXPECT_EQ(s.iteration, 100);
    EXPECT_EQ(s.consumed_train_samples, 800);
    EXPECT_EQ(s.consumed_valid_samples, 300);
    EXPECT_EQ(s.skipped_train_samples, 7);
    EXPECT_EQ(s.floating_point_operations, 1.25e21);
    EXPECT_EQ(s.seed, expected.seed);
    EXPECT_EQ(s.scheduler, expected.scheduler);
    EXPECT_EQ(s.scheduler["max_lr"].get<double>(), 0.1 + 0.2);
    EXPECT_EQ(s.loss_scaler, expected.loss_scaler);
    EXPECT_EQ(s.optimizer, expected.optimizer);
    EXPECT_EQ(s.arguments, expected.arguments);
    EXPECT_EQ(read_checkpoint_state(find_checkpoint(folder.path()).value()).consumed_train_samples, 800);
    EXPECT_EQ(read_text_file(folder / "iter_0000100/vocab.json"), "{}");
}

TEST(Checkpoint, NumbersThatCannotBeWrittenAreRefused) {
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel model(tiny_gpt2(), DType::f32, 5);
    CheckpointState state = state_at(1);
    state.scheduler = {{"deep", {1.0, {{"lr", std::numeric_limits<double>::infinity()}}}}};
    SaveOptions options;
    options.folder = folder.path();
    EXPECT_THROW(save_checkpoint({model.config(), model.params(), model.optimizer(), {}, 1, state}, options), Error);
    EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Checkpoint, IsAHuggingFaceModel) {
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel model(tiny_gpt2(), DType::f32, 5);
    const std::string path = save(model, folder.path(), 3).path;
    const ModelConfig& c = model.config();
    const SafetensorsFile file(path + "/model.safetensors");
    EXPECT_EQ(file.metadata().at("format"), "pt");
    EXPECT_EQ(file.find("transformer.wte.weight")->shape, (std::vector<std::int64_t>{c.true_vocab, c.hidden}));
    EXPECT_EQ(file.find("lm_head.weight"), nullptr);
    const std::vector<float> stored = floats_of(path + "/model.safetensors", "transformer.h.1.mlp.c_fc.weight");
    const float* ours = model.param("layers.1.mlp.up.weight").value.ptr<float>();
    for (std::int64_t in = 0; in < c.hidden; ++in) {
        for (std::int64_t out = 0; out < c.ffn; ++out) {
            ASSERT_EQ(stored[static_cast<std::size_t>(in * c.ffn + out)], ours[out * c.hidden + in]);
        }
    }
    const nlohmann::json config = read_json_file(path + "/config.json");
    EXPECT_EQ(config["architectures"][0], "GPT2LMHeadModel");
    EXPECT_EQ(config["torch_dtype"], "float32");
    EXPECT_EQ(config["eos_token_id"], 52);
    EXPECT_TRUE(fs::exists(path + "/generation_config.json"));
}

TEST(Checkpoint, SplitsLargeModelsIntoShards) {
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel model(tiny_llama(), DType::bf16, 5), back(tiny_llama(), DType::bf16, 0);
    SaveOptions options;
    options.shard_bytes = 8000;
    const std::string path = save(model, folder.path(), 3, options).path;
    EXPECT_FALSE(fs::exists(path + "/model.safetensors"));
    EXPECT_TRUE(fs::exists(path + "/model.safetensors.index.json"));
    EXPECT_TRUE(fs::exists(path + "/training_state/exp_avg.safetensors.index.json"));
    load(folder.path(), back);
    EXPECT_EQ(model.first_difference(back), "");
}

TEST(Checkpoint, OwnNamesAreSaidInOneLine) {
    TempFolder folder{TempFolder::Where::memory};
    const SaveReport report = save(FakeModel(tiny_unnamed(), DType::f32, 5), folder.path(), 3);
    ASSERT_EQ(report.notices.size(), 1u);
    EXPECT_NE(report.notices[0].find("learned positions, RMSNorm, SwiGLU"), std::string::npos) << report.notices[0];
    const SafetensorsFile file(report.path + "/model.safetensors");
    EXPECT_NE(file.find("layers.1.attention.qkv.weight"), nullptr);
    EXPECT_TRUE(save(FakeModel(tiny_gpt2(), DType::f32, 5), folder.path(), 4).notices.empty());
}

TEST(Checkpoint, FinetuneTakesTheWeightsOnly) {
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel model(tiny_llama(), DType::bf16, 5), back(tiny_llama(), DType::bf16, 0);
    save(model, folder.path(), 100);
    const LoadResult result = load(folder.path(), back, {.finetune = true});
    EXPECT_FALSE(result.optimizer_loaded);
    EXPECT_EQ(result.state.iteration, 0);
    EXPECT_TRUE(result.state.scheduler.empty());
    EXPECT_EQ(model.first_difference(back, false), "");
    EXPECT_EQ(back.state("final_norm.weight", "exp_avg").ptr<float>()[0], 0);
}

TEST(Checkpoint, NoLoadOptimKeepsTheRest) {
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel model(tiny_llama(), DType::bf16, 5), back(tiny_llama(), DType::bf16, 0);
    save(model, folder.path(), 100);
    const LoadResult result = load(folder.path(), back, {.optimizer = false});
    EXPECT_FALSE(result.optimizer_loaded);
    EXPECT_EQ(result.state.iteration, 100);
    EXPECT_EQ(model.first_difference(back, false), "");
    EXPECT_EQ(back.state("final_norm.weight", "master").ptr<float>()[0],
              static_cast<float>(back.param("final_norm.weight").value.ptr<bf16_t>()[0]));
}

TEST(Checkpoint, NoSaveOptimSavesNone) {
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel model(tiny_llama(), DType::f32, 5), back(tiny_llama(), DType::f32, 0);
    const std::string path = save(model, folder.path(), 100, {.folder = "", .optimizer = false}).path;
    EXPECT_FALSE(fs::exists(path + "/training_state/exp_avg.safetensors"));
    expect_usage_error([&] { load(folder.path(), back); }, {"no optimizer state", "--no-load-optim"});
    EXPECT_EQ(load(folder.path(), back, {.optimizer = false}).state.iteration, 100);
}

// The padding of the vocabulary is not in the model files: the last row stands for it.
TEST(Checkpoint, ModelFilesAloneLoadWithFinetune) {
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel model(tiny_llama(), DType::f32, 5), back(tiny_llama(), DType::f32, 0);
    const std::string path = save(model, folder.path(), 100).path;
    fs::remove_all(path + "/training_state");
    expect_usage_error([&] { load(path, back); }, {"only model files", "--finetune"});
    EXPECT_FALSE(find_checkpoint(path)->has_state);
    const LoadResult result = load(path, back, {.finetune = true});
    EXPECT_EQ(result.state.iteration, 0);
    const ModelConfig& c = model.config();
    const float* ours = model.param("lm_head.weight").value.ptr<float>();
    const float* theirs = back.param("lm_head.weight").value.ptr<float>();
    const auto row = static_cast<std::size_t>(c.hidden) * 4;
    EXPECT_EQ(std::memcmp(ours, theirs, row * static_cast<std::size_t>(c.true_vocab)), 0);
    for (std::int64_t r = c.true_vocab; r < c.vocab; ++r) {
        EXPECT_EQ(std::memcmp(theirs + r * c.hidden, ours + (c.true_vocab - 1) * c.hidden, row), 0);
    }
}

TEST(Checkpoint, NamesOfBaseModelsAndDerivedTensorsAreUnderstood) {
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel model(tiny_gpt2(), DType::f32, 5), back(tiny_gpt2(), DType::f32, 0);
    const std::string path = save(model, folder.path(), 100).path;
    std::vector<TensorSpec> specs = {{"h.0.attn.bias", DType::u8, {1, 1, 4, 4}}, {"lm_head.weight", DType::f32, {1}}};
    std::vector<std::vector<float>> data;
    for (const HfTensor& t : hf_tensors(model.config(), HfArchitecture::gpt2)) {
        specs.push_back({t.name.substr(std::string("transformer.").size()), DType::f32, t.shape});
        data.push_back(floats_of(path + "/model.safetensors", t.name));
    }
    fs::remove_all(path + "/training_state");
    SafetensorsWriter writer(path + "/model.safetensors", specs, {});
    for (std::size_t i = 0; i < data.size(); ++i) writer.write(specs[i + 2].name, 0, std::as_bytes(std::span(data[i])));
    writer.close();
    load(path, back, {.finetune = true});
    const Tensor a = model.param("layers.1.attention.qkv.weight").value,
                 b = back.param("layers.1.attention.qkv.weight").value;
    EXPECT_EQ(std::memcmp(a.data, b.data, a.bytes()), 0);
}

TEST(Checkpoint, ConvertsBetweenDTypes) {
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel bf16(tiny_gpt2(), DType::bf16, 5), f32(tiny_gpt2(), DType::f32, 0);
    save(bf16, folder / "bf16", 1);
    const LoadResult result = load(folder / "bf16", f32);
    ASSERT_EQ(result.notices.size(), 1u);
    EXPECT_NE(result.notices[0].find("bf16 in the files and f32"), std::string::npos);
    // The main weights, not their rounded copies.
    const Tensor master = bf16.state("layers.0.mlp.up.weight", "master"),
                 value = f32.param("layers.0.mlp.up.weight").value;
    EXPECT_EQ(std::memcmp(master.data, value.data, value.bytes()), 0);
    save(f32, folder / "f32", 2);
    const FakeModel back(tiny_gpt2(), DType::bf16, 0);
    load(folder / "f32", back);
    EXPECT_EQ(bf16.first_difference(back), "");
}

TEST(Checkpoint, AnotherPaddingIsNoOtherModel) {
    ModelConfig wider = tiny_llama(), narrower = tiny_llama();
    wider.vocab = 80;
    narrower.vocab = 56;
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel model(tiny_llama(), DType::bf16, 5), wide(wider, DType::bf16, 7), narrow(narrower, DType::bf16, 0);
    save(model, folder.path(), 1);
    load(folder.path(), wide);
    load(folder.path(), narrow);
    const std::size_t row = static_cast<std::size_t>(wider.hidden) * 4;
    for (const char* kind : {"master", "exp_avg"}) {
        const std::byte* saved = model.state("lm_head.weight", kind).data;
        const std::byte* w = wide.state("lm_head.weight", kind).data;
        EXPECT_EQ(std::memcmp(saved, w, row * 64), 0);
        EXPECT_EQ(std::memcmp(saved, narrow.state("lm_head.weight", kind).data, row * 56), 0);
        const std::vector<std::byte> zero(row);
        const std::byte* filled = std::string(kind) == "master" ? saved + row * 63 : zero.data();
        EXPECT_EQ(std::memcmp(w + row * 70, filled, row), 0) << kind;
    }
    ModelConfig other = tiny_llama();
    other.true_vocab = 54;
    expect_usage_error([&] { load(folder.path(), FakeModel(other, DType::bf16, 0)); },
                       {"vocabulary of 53", "54", "tokenizer"});
    other.true_vocab = other.vocab = 52;
    expect_usage_error([&] { load(folder.path(), FakeModel(other, DType::bf16, 0)); }, {"vocabulary of 53", "52"});
}

TEST(Checkpoint, AnotherModelIsRefusedByTheNamesOfTheFlags) {
    TempFolder folder{TempFolder::Where::memory};
    save(FakeModel(tiny_llama(), DType::f32, 5), folder.path(), 1);
    ModelConfig c = tiny_llama();
    c.layers = 3;
    c.ffn = 64;
    expect_usage_error([&] { load(folder.path(), FakeModel(c, DType::f32, 0)); },
                       {"config.json", "num-layers 2 (this run: 3)", "ffn-hidden-size 96 (this run: 64)"});
    c = tiny_llama();
    c.tied = true;
    expect_usage_error([&] { load(folder.path(), FakeModel(c, DType::f32, 0)); },
                       {"untie-embeddings-and-output-weights yes (this run: no)"});
}

TEST(Checkpoint, OtherMathsInTheSameShapesIsSaid) {
    TempFolder folder{TempFolder::Where::memory};
    save(FakeModel(tiny_llama(), DType::f32, 5), folder.path(), 1);
    ModelConfig c = tiny_llama();
    c.rope.base = 10000;
    c.activation = Activation::geglu;
    const LoadResult result = load(folder.path(), FakeModel(c, DType::f32, 0));
    ASSERT_EQ(result.notices.size(), 2u);
    EXPECT_EQ(result.notices[1], "rotary-base was 500000 in the checkpoint and is 10000 in this run");
}

TEST(Checkpoint, AnotherOptimizerIsRefused) {
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel model(tiny_gpt2(), DType::f32, 5), back(tiny_gpt2(), DType::f32, 0);
    save(model, folder.path(), 1);
    LoadTarget target = back.target();
    for (OptimizerTensor& t : target.optimizer) {
        if (t.kind == "exp_avg_sq") t.kind = "exp_avg_slow";
    }
    expect_usage_error([&] { load_checkpoint(find_checkpoint(folder.path()).value(), target, {}); },
                       {"exp_avg_sq", "--no-load-optim"});
    target.optimizer.clear();
    expect_usage_error([&] { load_checkpoint(find_checkpoint(folder.path()).value(), target, {}); }, {"exp_avg"});
}

TEST(Checkpoint, EveryDamagedFileIsNamed) {
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel model(tiny_llama(), DType::bf16, 5), back(tiny_llama(), DType::bf16, 0);
    const std::string path = save(model, folder.path(), 1).path;
    for (const char* name : {"model", "training_state/master", "training_state/exp_avg", "training_state/exp_avg_sq"}) {
        const std::string file = cat(path, "/", name, ".safetensors");
        const SafetensorsEntry last = SafetensorsFile(file).entries().back();
        flip_bit(file, last.offset + last.bytes - 1);
        expect_usage_error([&] { load(folder.path(), back); },
                           {file.c_str(), last.name.c_str(), "checksum", "--ckpt-step"});
        flip_bit(file, last.offset + last.bytes - 1);
        load(folder.path(), back);
        fs::resize_file(file, fs::file_size(file) - 1);
        expect_usage_error([&] { load(folder.path(), back); }, {file.c_str(), "is the file whole?"});
        save(model, folder.path(), 1);
    }
    const std::string state = path + "/training_state/state.json";
    std::string text = read_text_file(state);
    text.replace(text.find("\"consumed_train_samples\": 8"), 27, "\"consumed_train_samples\": 9");
    write_file_durably(state, text);
    expect_usage_error([&] { load(folder.path(), back); }, {"state.json", "checksum"});
    write_file_durably(state, text.substr(0, text.size() / 2));
    expect_usage_error([&] { load(folder.path(), back); }, {"state.json", "not valid JSON"});
}

TEST(Checkpoint, ANewerFormatIsRefused) {
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel model(tiny_gpt2(), DType::f32, 5);
    const std::string state = save(model, folder.path(), 1).path + "/training_state/state.json";
    nlohmann::json j = read_json_file(state);
    j["format_version"] = checkpoint_format_version + 1;
    j.erase("checksum");
    write_file_durably(state, json_text(j));
    expect_usage_error([&] { load(folder.path(), model); }, {"state.json", "newer"});
}

class CheckpointModelFile : public ::testing::Test {
  protected:
    void rewrite(const std::function<void(std::vector<TensorSpec>&)>& change) {
        const FakeModel model(tiny_llama(), DType::f32, 5);
        const std::string path = save(model, folder_.path(), 1).path;
        fs::remove_all(path + "/training_state");
        std::vector<TensorSpec> specs;
        for (const HfTensor& t : hf_tensors(model.config(), HfArchitecture::llama)) {
            specs.push_back({t.name, DType::f32, t.shape});
        }
        change(specs);
        SafetensorsWriter(path + "/model.safetensors", specs, {}).close();
    }
    void expect_refused(std::initializer_list<const char*> parts) {
        const FakeModel back(tiny_llama(), DType::f32, 0);
        expect_usage_error([&] { load(folder_ / "iter_0000001", back, {.finetune = true}); }, parts);
    }
    TempFolder folder_{TempFolder::Where::memory};
};

TEST_F(CheckpointModelFile, MissingTensorIsNamed) {
    rewrite([](auto& specs) { specs.erase(specs.begin() + 4); });
    expect_refused({"model.safetensors", "model.layers.0.self_attn.v_proj.weight is missing"});
}
TEST_F(CheckpointModelFile, ExtraTensorIsNamed) {
    rewrite([](auto& specs) { specs.push_back({"model.layers.0.self_attn.q_proj.bias", DType::f32, {48}}); });
    expect_refused({"q_proj.bias belongs to no part"});
}
TEST_F(CheckpointModelFile, WrongShapeIsNamedWithBoth) {
    rewrite([](auto& specs) { specs[2].shape = {47, 32}; });
    expect_refused({"q_proj.weight is [47,32]", "[48,32]"});
}
TEST_F(CheckpointModelFile, WrongDTypeIsNamed) {
    rewrite([](auto& specs) { specs[2].dtype = DType::i32; });
    expect_refused({"q_proj.weight is I32"});
}

TEST(FindCheckpoint, FollowsTheTracker) {
    TempFolder folder{TempFolder::Where::memory};
    const FakeModel model(tiny_gpt2(), DType::f32, 5);
    EXPECT_FALSE(find_checkpoint(folder / "absent").has_value());
    EXPECT_FALSE(find_checkpoint(folder.path()).has_value());
    save(model, folder.path(), 10);
    save(model, folder.path(), 20);
    EXPECT_EQ(find_checkpoint(folder.path())->path, folder / "iter_0000020");
    EXPECT_EQ(find_checkpoint(folder.path())->iteration, 20);
    EXPECT_TRUE(find_checkpoint(folder.path())->has_state);
    EXPECT_EQ(find_checkpoint(folder.path(), 10)->iteration, 10);
    EXPECT_EQ(find_checkpoint(folder / "iter_0000010")->iteration, 10);
    expect_usage_error([&] { find_checkpoint(folder.path(), 15); }, {"--ckpt-step", "iter_0000015"});

    const std::string tracker = folder / "latest_checkpointed_iteration.txt";
    write_file_durably(tracker, " 10\n");
    EXPECT_EQ(find_checkpoint(folder.path())->iteration, 10);
    for (const char* bad : {"", "ten", "-1", "99999999999999999999"}) {
        write_file_durably(tracker, bad);
        expect_usage_error([&] { find_checkpoint(folder.path()); }, {tracker.c_str(), "must hold an iteration"});
    }
    write_file_durably(tracker, "30");
    expect_usage_error([&] { find_checkpoint(folder.path()); }, {"iteration 30", "iter_0000030", "does not exist"});
    fs::rename(folder / "iter_0000010", folder / "release");
    write_file_durably(tracker, "release");
    EXPECT_TRUE(find_checkpoint(folder.path())->release);
    EXPECT_EQ(load(folder.path(), model).state.iteration, 0);
}

TEST(FindCheckpoint, ForeignFormatsAreNamed) {
    TempFolder folder{TempFolder::Where::memory};
    make_folders(folder / "iter_0000005");
    write_file_durably(folder / "latest_checkpointed_iteration.txt", "5");
    write_file_durably(folder / "iter_0000005/metadata.json", "{}");
    expect_usage_error([&] { find_checkpoint(folder.path()); }, {"Megatron's own format"});
    make_folders(folder / "hf");
    write_file_durably(folder / "hf/config.json", "{}");
    expect_usage_error([&] { find_checkpoint(folder / "hf"); }, {"no model.safetensors"});
    write_file_durably(folder / "hf/pytorch_model.bin", "");
    expect_usage_error([&] { find_checkpoint(folder / "hf"); }, {"pytorch_model.bin", "safetensors"});
}

TEST(CheckpointLines, AreMegatrons) {
    CheckpointLines lines;
    CheckpointLocation location{"ck", "ck/iter_0000100", 100, false, true};
    TimeStamp now = *TimeStamp::parse("2025-04-01 12:00:00");
    now.microseconds = 42;
    EXPECT_EQ(lines.saving(100, "ck", now), "saving checkpoint at iteration     100 to ck in safetensors format");
    EXPECT_EQ(lines.saved(100, "ck", now),
              "  successfully saved checkpoint from iteration     100 to ck [ t 1/1, p 1/1 ]");
    EXPECT_EQ(lines.loading(location), " loading distributed checkpoint from ck at iteration 100");
    EXPECT_EQ(lines.version(), " checkpoint version 3.0");
    EXPECT_EQ(lines.loaded(location, 100, now),
              "  successfully loaded checkpoint from ck [ t 1/1, p 1/1 ] at iteration 100");
    EXPECT_EQ(lines.missing("ck")[0], "WARNING: could not find the metadata file ck/latest_checkpointed_iteration.txt");
    EXPECT_EQ(lines.missing("ck")[1], "    will not load any checkpoints and will start from random");

    lines.format = LogFormat::legacy;
    EXPECT_EQ(lines.saving(100, "ck", now), "saving checkpoint at iteration     100 to ck");
    EXPECT_EQ(lines.saved(100, "ck", now), "  successfully saved checkpoint at iteration     100 to ck");
    EXPECT_EQ(lines.loading(location), " loading checkpoint from ck at iteration 100");
    EXPECT_EQ(lines.loaded(location, 100, now), "  successfully loaded checkpoint from ck at iteration 100");

    lines.format = LogFormat::core_head;
    lines.tp_size = 8;
    EXPECT_EQ(lines.saved(100, "ck", now),
              "  [2025-04-01 12:00:00.000042] successfully saved checkpoint from iteration     100 to ck "
              "[ t 1/8, gtp_remat 1/1, p 1/1 ]");
    location.release = true;
    EXPECT_EQ(lines.loading(location), " loading release distributed checkpoint from ck");
}

}  // namespace
}  // namespace tera
