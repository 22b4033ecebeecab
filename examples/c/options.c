/* The command line of kvf-chat. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char options_usage[] =
    "usage: kvf-chat [options] [PROMPT ...]\n"
    "\n"
    "Answers all prompts at the same time. Without prompts it reads your messages from the standard input,\n"
    "one a line, as one conversation.\n"
    "\n"
    "  --model PATH      a .gguf file, a llama2.c .bin file with tok512.bin beside it, or \"random\"\n"
    "                    (default: .cache/SmolLM2-135M-Instruct.Q4_1.gguf, see scripts/fetch_model.sh)\n"
    "  --prompts FILE    prompts from a file: one a line, or one a paragraph if the file has blank lines\n"
    "  --system TEXT     the system message that every chat begins with\n"
    "  --raw             prompts are plain text to go on with; no chat template\n"
    "  --max-new N       tokens to make for each prompt (default 128)\n"
    "  --samples N       answers to each prompt, from one computed prompt (default 1)\n"
    "  --temperature X   0 takes the likeliest token (default 0)\n"
    "  --top-p X         draws from the likeliest tokens that together reach X (default 1)\n"
    "  --seed N          of the draws (default 1)\n"
    "  --page P          tokens a page, a power of two, 1 to 256 (default 16, or what the format needs)\n"
    "  --pages N         pages of the cache (default 512)\n"
    "  --kv FORMAT       how keys and values are kept (default f32)\n"
    "  --kv-layer L=FORMAT[,L=FORMAT...]   layers, from 0 on, that are kept in another format\n"
    "  --kv-exact TYPE   int4-channel and kivi2: tokens not quantised yet as f32, f16 or bf16 (default f32)\n"
    "  --kv-sinks N      int4-channel and kivi2: pages of the first N tokens are never quantised (default 0)\n"
    "  --batch N         chats at a time (default 16)\n"
    "  --chunk C         prompt tokens a step (default 64)\n"
    "  --draft K         drafts up to K tokens a step from the text so far (default 0)\n"
    "  --threads T       (default: one per processor)\n"
    "  --contiguous      an array per chat in place of pages; nothing is shared\n"
    "  --evict POLICY    each KV head of a layer keeps --budget tokens of a chat: h2o, streaming, window, random,\n"
    "                    tova, snapkv, keydiff, knorm or learned\n"
    "  --evict-weights F weights of the learned policy (make learn)\n"
    "  --budget N        tokens, the newest one included\n"
    "  --slack N         tokens above the budget before all of them go at once (default 0, or 15)\n"
    "  --sinks S         first tokens that stay (default 4; window: 0)\n"
    "  --recent R        newest tokens that stay (default: what the policy needs)\n"
    "  --removal WAY     hole, replace (new tokens take the place of old ones) or compact (default)\n"
    "  --evict-before    makes a token's place before it attends, not after\n"
    "  --meter           measures how much attention evicted tokens had\n"
    "  --endless         does not end where the model would, but after --max-new tokens\n"
    "  --quiet           no table at the end\n"
    "  --help\n"
    "\n"
    "FORMAT is %s.\n";

enum { MODEL = 256, FILE_OF, SYSTEM, RAW, MAX_NEW, SAMPLES, TEMPERATURE, TOP_P, SEED, PAGE, PAGES, KV, KV_LAYER,
       KV_EXACT_AS, KV_SINKS, BATCH, CHUNK, DRAFT, THREADS, CONTIGUOUS, QUIET, HELP,
       EVICT, WEIGHTS, BUDGET, SLACK, SINKS, RECENT, REMOVAL, BEFORE, METER, ENDLESS };

static const struct option names[] = {
    { "model", 1, NULL, MODEL },     { "prompts", 1, NULL, FILE_OF },     { "system", 1, NULL, SYSTEM },
    { "raw", 0, NULL, RAW },         { "max-new", 1, NULL, MAX_NEW },     { "samples", 1, NULL, SAMPLES },
    { "temperature", 1, NULL, TEMPERATURE }, { "top-p", 1, NULL, TOP_P }, { "seed", 1, NULL, SEED },
    { "page", 1, NULL, PAGE },       { "pages", 1, NULL, PAGES },         { "kv", 1, NULL, KV },
    { "kv-layer", 1, NULL, KV_LAYER }, { "kv-exact", 1, NULL, KV_EXACT_AS }, { "kv-sinks", 1, NULL, KV_SINKS },
    { "batch", 1, NULL, BATCH },     { "chunk", 1, NULL, CHUNK },         { "draft", 1, NULL, DRAFT },
    { "threads", 1, NULL, THREADS }, { "contiguous", 0, NULL, CONTIGUOUS }, { "quiet", 0, NULL, QUIET },
    { "help", 0, NULL, HELP },       { "evict", 1, NULL, EVICT },         { "budget", 1, NULL, BUDGET },
    { "sinks", 1, NULL, SINKS },     { "recent", 1, NULL, RECENT },       { "removal", 1, NULL, REMOVAL },
    { "evict-before", 0, NULL, BEFORE }, { "evict-weights", 1, NULL, WEIGHTS }, { "endless", 0, NULL, ENDLESS },
    { "meter", 0, NULL, METER },     { "slack", 1, NULL, SLACK },         { NULL, 0, NULL, 0 },
};

/* Reads a whole number from `low` to `high`. */
static int whole(const char *name, int low, int high, int *value, struct error *error)
{
    char *end;
    long number;

    errno = 0;
    number = strtol(optarg, &end, 10);
    if (end == optarg || *end || errno || number < low || number > high)
        return fail(error, "--%s takes a whole number from %d to %d, not \"%s\"", name, low, high, optarg);
    *value = (int)number;
    return 0;
}

static int real(const char *name, double low, double high, float *value, struct error *error)
{
    char *end;
    const double number = strtod(optarg, &end);

    if (end == optarg || *end || !isfinite(number) || number < low || number > high)
        return fail(error, "--%s takes a number from %g to %g, not \"%s\"", name, low, high, optarg);
    *value = (float)number;
    return 0;
}

static int seed(uint64_t *value, struct error *error)
{
    char *end;
    errno = 0;
    *value = strtoull(optarg, &end, 10);
    return end == optarg || *end || errno || *optarg == '-'
               ? fail(error, "--seed takes a whole number, not \"%s\"", optarg) : 0;
}

static int page(int *value, struct error *error)
{
    if (whole("page", 1, 256, value, error) != 0)
        return -1;
    return *value & (*value - 1) ? fail(error, "--page takes a power of two from 1 to 256, not %d", *value) : 0;
}

/* The name of a format; layers are checked when the model is known. */
static int format(const char *name, int exact, const char **value, struct error *error)
{
    const struct kv_format *format = kv_format_find(optarg, strlen(optarg));

    if (!format || (exact && format->kind != KV_EXACT))
        return fail(error, "--%s takes %s, not \"%s\"", name, exact ? "f32, f16 or bf16" : kv_format_names(), optarg);
    *value = optarg;
    return 0;
}

static int read_option(struct options *o, int option, struct error *error)
{
    switch (option) {
    case MODEL:       o->model = optarg; return 0;
    case FILE_OF:     o->file = optarg; return 0;
    case SYSTEM:      o->system = optarg; return 0;
    case RAW:         o->raw = 1; return 0;
    case CONTIGUOUS:  o->contiguous = 1; return 0;
    case QUIET:       o->quiet = 1; return 0;
    case MAX_NEW:     return whole("max-new", 1, 1 << 20, &o->max_new, error);
    case SAMPLES:     return whole("samples", 1, 256, &o->samples, error);
    case TEMPERATURE: return real("temperature", 0, 100, &o->sampling.temperature, error);
    case TOP_P:       return real("top-p", 0, 1, &o->sampling.top_p, error);
    case SEED:        return seed(&o->sampling.seed, error);
    case PAGE:        return page(&o->page_tokens, error);
    case PAGES:       return whole("pages", 1, 1 << 24, &o->pages, error);
    case KV:          return format("kv", 0, &o->kv.format, error);
    case KV_EXACT_AS: return format("kv-exact", 1, &o->kv.exact, error);
    case KV_SINKS:    return whole("kv-sinks", 0, 1 << 20, &o->kv.sinks, error);
    case KV_LAYER:    o->kv.layers = optarg; return 0;
    case BATCH:       return whole("batch", 1, 1024, &o->batch, error);
    case CHUNK:       return whole("chunk", 1, 4096, &o->chunk, error);
    case DRAFT:       return whole("draft", 0, 32, &o->draft, error);
    case THREADS:     return whole("threads", 1, 256, &o->threads, error);
    case EVICT:       o->evict = optarg; return 0;
    case WEIGHTS:     o->evict_weights = optarg; return 0;
    case BUDGET:      return whole("budget", 1, 1 << 20, &o->budget, error);
    case SLACK:       return whole("slack", 0, 1 << 16, &o->slack, error);
    case SINKS:       return whole("sinks", 0, 1 << 20, &o->sinks, error);
    case RECENT:      return whole("recent", 0, 1 << 20, &o->recent, error);
    case REMOVAL:     o->removal = optarg; return 0;
    case BEFORE:      o->evict_before = 1; return 0;
    case METER:       o->meter = 1; return 0;
    case ENDLESS:     o->endless = 1; return 0;
    case HELP:        return 1;
    default:          return -1;
    }
}

int options_read(struct options *o, int argc, char **argv, struct error *error)
{
    int option, status;

    *o = (struct options){
        .model = getenv("KVF_MODEL"), .pages = 512, .chunk = 64,
        .batch = 16, .samples = 1, .max_new = 128, .slack = -1, .sinks = -1, .recent = -1,
        .system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
        .sampling = { .temperature = 0.0f, .top_p = 1.0f, .seed = 1 },
    };
    if (!o->model || !*o->model)
        o->model = ".cache/SmolLM2-135M-Instruct.Q4_1.gguf";
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", names, NULL)) != -1) {
        if (option == ':')
            return fail(error, "%s needs a value", argv[optind - 1]);
        if (option == '?')
            return fail(error, "there is no option %s", argv[optind - 1]);
        status = read_option(o, option, error);
        if (status != 0)
            return status;
    }
    o->prompts = argv + optind;
    o->n_prompts = argc - optind;
    if (!o->evict && (o->budget > 0 || o->slack >= 0 || o->sinks >= 0 || o->recent >= 0 || o->removal || o->evict_before ||
                      o->evict_weights || o->meter))
        return fail(error, "--budget, --slack, --sinks, --recent, --removal, --evict-before, --evict-weights and --meter go with "
                           "--evict");
    if (o->file && o->n_prompts > 0)
        return fail(error, "prompts come from --prompts or from the command line, not from both");
    return 0;
}
