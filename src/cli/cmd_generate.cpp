// teratron generate: continues a prompt with a checkpoint of ours or a folder of Hugging Face files.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "cli/commands.h"
#include "cli/tokenizer_flags.h"
#include "config/arg_parser.h"
#include "core/error.h"
#include "io/json_file.h"
#include "train/checkpoint.h"
#include "train/generate.h"

namespace tera {
namespace {

ArgParser make_parser() {
    ArgParser parser("teratron generate", "Continues a prompt with a trained model.");
    parser.option("load", ArgType::text)
        .required()
        .help("checkpoint: a --save folder, one of its iter_ folders, or a folder of Hugging Face files");
    parser.option("ckpt-step", ArgType::integer).help("iteration to load instead of the latest");
    parser.option("prompt", ArgType::text).help("text to continue; none: begin a document");
    parser.option("prompt-file", ArgType::text).help("file with the text to continue, - for standard input");
    parser.option("max-new-tokens", ArgType::integer).defaults("128").help("tokens to generate at most");
    parser.flag("greedy").help("always the most likely token");
    parser.option("temperature", ArgType::real).defaults("1.0").help("below 1 bolder, above 1 wilder; 0 is greedy");
    parser.option("top-k", ArgType::integer).defaults("0").help("draw from the K most likely tokens; 0: from all");
    parser.option("top-p", ArgType::real).defaults("1.0").help("draw from the fewest tokens that reach probability P");
    parser.option("seed", ArgType::integer).defaults("1234").help("the same seed gives the same text");
    parser.option("num-samples", ArgType::integer).defaults("1").help("texts to generate");
    parser.flag("stop-at-eod").help("end a text at the end-of-document token");
    parser.flag("no-prompt").help("print what is new, without the prompt before it");
    parser.option("device", ArgType::text).help("cpu or cuda; default: what is there");
    parser.option("threads", ArgType::integer).defaults("0").help("CPU threads; 0: all");
    add_tokenizer_flags(parser);
    return parser;
}

SamplingConfig sampling_from(const ParsedArgs& args) {
    SamplingConfig s;
    s.greedy = args.boolean("greedy");
    s.temperature = args.real("temperature");
    s.top_k = args.integer("top_k");
    s.top_p = args.real("top_p");
    s.seed = static_cast<std::uint64_t>(args.integer("seed"));
    check_sampling(s);
    return s;
}

std::string prompt_from(const ParsedArgs& args) {
    if (args.given("prompt") && args.given("prompt_file")) usage_error("give --prompt or --prompt-file, not both");
    if (!args.given("prompt_file")) return args.text("prompt");
    const std::string path = args.text("prompt_file");
    if (path != "-") return read_text_file(path);
    return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

/// The tokenizer that the flags name, else the one beside the model, else the one that the model was trained with.
std::unique_ptr<Tokenizer> tokenizer_for(const ParsedArgs& args, const CheckpointLocation& location) {
    for (const char* flag : {"tokenizer_type", "vocab_file", "merge_file", "tokenizer_model", "vocab_size"}) {
        if (args.given(flag)) return make_tokenizer(tokenizer_config(args));
    }
    TokenizerConfig config;
    const auto beside = [&](const char* name) {
        const std::string path = location.path + "/" + name;
        return std::filesystem::exists(path) ? path : std::string();
    };
    config.vocab_file = beside("vocab.json");
    config.merge_file = beside("merges.txt");
    if (!config.vocab_file.empty() && !config.merge_file.empty()) {
        config.tokenizer_type = "GPT2BPETokenizer";
        return make_tokenizer(config);
    }
    if (location.has_state) {
        const CheckpointState state = read_checkpoint_state(location);
        const JsonObject saved(state.arguments, location.path + "/training_state/state.json: arguments");
        config.tokenizer_type = saved.text("tokenizer_type", "");
        config.vocab_file = saved.text("vocab_file", "");
        config.merge_file = saved.text("merge_file", "");
        config.tokenizer_model = saved.text("tokenizer_model", "");
        config.vocab_size = saved.integer("vocab_size", 0);
        config.vocab_extra_ids = saved.integer("vocab_extra_ids", 0);
        config.tiktoken_pattern = saved.text("tiktoken_pattern", "");
        config.tiktoken_num_special_tokens = saved.integer("tiktoken_num_special_tokens", 1000);
        // The copies in the checkpoint count where the files have gone.
        const auto instead = [&](std::string& path, const char* name) {
            if (!path.empty() && !std::filesystem::exists(path) && !beside(name).empty()) path = beside(name);
        };
        instead(config.tokenizer_model, "tokenizer.model");
        instead(config.tokenizer_model, "tokenizer.json");
        instead(config.vocab_file, "vocab.txt");
        if (!config.tokenizer_type.empty()) return make_tokenizer(config);
    }
    config.tokenizer_model = beside("tokenizer.json");
    config.tokenizer_type = "HuggingFaceTokenizer";
    if (!config.tokenizer_model.empty()) return make_tokenizer(config);
    usage_error(location.path,
                " holds no tokenizer (vocab.json and merges.txt); name one with --vocab-file and --merge-file");
}

/// A model with its weights, ready to be asked.
class LoadedModel {
  public:
    LoadedModel(const CheckpointLocation& location, const HfModel& description, Workspace& workspace)
        : arena_(Arena::Kind::real, workspace.engine().memory()), model_(inference_config(description.config), {}, 0) {
        const DType stored = description.dtype.value_or(DType::f32);
        const bool widen =
            stored == DType::f16 && workspace.engine().device() == Device::cpu;  // there only for storage
        const std::vector<Param*> params = params_of(model_);
        for (Param* p : params) p->value = arena_.tensor(widen ? DType::f32 : stored, p->full_shape);
        load_checkpoint(location, {model_.config(), params, {}, workspace.ctx().temp},
                        {.finetune = true, .optimizer = false});
    }
    const Decoder& model() const { return model_; }

  private:
    static ModelConfig inference_config(ModelConfig config) {
        config.hidden_dropout = config.attention_dropout = 0;
        return config;
    }
    Arena arena_;
    Decoder model_;
};

void print_now(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

/// Prints one text as it grows; returns its number of tokens.
std::int64_t print_sample(Generator& generator, const Tokenizer& tokenizer, std::span<const std::int32_t> context,
                          const SamplingConfig& sampling, std::uint64_t sample, const Generator::Stop& stop) {
    TextStream stream(tokenizer, context);
    std::int64_t count = 0;
    const Generator::End end = generator.run(sampling, sample, stop, [&](std::int32_t id) {
        ++count;
        print_now(stream.push(id));
    });
    print_now(stream.finish() + "\n");
    if (end == Generator::End::positions) {
        std::fprintf(stderr, "stopped after %lld tokens: the model has no more positions\n",
                     static_cast<long long>(count));
    }
    return count;
}

}  // namespace

int cmd_generate(const CommandArgs& arguments) {
    const ParsedArgs args = make_parser().parse(arguments);
    if (args.help_wanted) return 0;
    const SamplingConfig sampling = sampling_from(args);
    const std::int64_t max_new = args.integer("max_new_tokens"), samples = args.integer("num_samples");
    if (max_new < 1) usage_error("--max-new-tokens ", max_new, ": must be positive");
    if (samples < 1) usage_error("--num-samples ", samples, ": must be positive");
    const std::int64_t threads = args.integer("threads");
    if (threads < 0 || threads > 4096) usage_error("--threads ", threads, ": must be 0 (all) or a number of threads");
    const std::string prompt = prompt_from(args);

    std::optional<std::int64_t> step;
    if (args.given("ckpt_step")) step = args.integer("ckpt_step");
    const std::optional<CheckpointLocation> location = find_checkpoint(args.text("load"), step);
    if (!location) usage_error("--load ", args.text("load"), " holds no checkpoint and no model");
    const std::unique_ptr<Tokenizer> tokenizer = tokenizer_for(args, *location);
    const HfModel description = read_checkpoint_model(*location);

    std::vector<std::int32_t> ids;
    tokenizer->encode(prompt, ids);
    const bool begins_document = ids.empty();
    if (begins_document) ids.push_back(tokenizer->eod());
    ThreadPool pool(static_cast<int>(threads));
    const Engine engine(device_named(args.text("device")));
    Workspace workspace(engine, pool);
    const LoadedModel loaded(*location, description, workspace);
    const std::int64_t vocab = std::min(tokenizer->vocab_size(), description.config.true_vocab);

    const auto begin = std::chrono::steady_clock::now();
    Generator generator(loaded.model(), workspace, ids, max_new, vocab);
    Generator::Stop stop;
    if (args.boolean("stop_at_eod")) stop.token = tokenizer->eod();
    std::int64_t tokens = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
        if (samples > 1)
            std::printf("%s== sample %lld of %lld\n", i == 0 ? "" : "\n", static_cast<long long>(i + 1),
                        static_cast<long long>(samples));
        if (!begins_document && !args.boolean("no_prompt")) print_now(prompt);
        tokens += print_sample(generator, *tokenizer, ids, sampling, static_cast<std::uint64_t>(i), stop);
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    std::fprintf(stderr, "%lld tokens in %.2f s: %.1f tokens/s\n", static_cast<long long>(tokens), elapsed.count(),
                 static_cast<double>(tokens) / elapsed.count());
    return 0;
}

}  // namespace tera
