/* The compiler: the system's, for C++. What it makes is a shared library. */
#include "fake.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KERNEL_WORD "\nKERNEL("
#define PARAMETER_WORD "PLACE("
#define LONG_SOURCE 200000 /* characters: it takes longer to compile than to run */

struct nvrtc_program_ {
    char *source, *binary, *log;
    size_t bytes;
};

nvrtc_result nvrtcVersion(int *major, int *minor)
{
    *major = 12;
    *minor = 4;
    return NVRTC_DONE;
}

nvrtc_result nvrtcGetNumSupportedArchs(int *count)
{
    *count = 2;
    return NVRTC_DONE;
}

nvrtc_result nvrtcGetSupportedArchs(int *architectures)
{
    architectures[0] = 80;
    architectures[1] = FAKE_CAPABILITY;
    return NVRTC_DONE;
}

const char *nvrtcGetErrorString(nvrtc_result error)
{
    return error == NVRTC_DONE ? "NVRTC_SUCCESS" : "NVRTC_ERROR";
}

nvrtc_result nvrtcCreateProgram(nvrtc_program *program, const char *source, const char *name,
                                int header_count, const char *const *headers, const char *const *header_names)
{
    if (source == NULL || name == NULL || header_count != 0 || headers != NULL || header_names != NULL)
        return NVRTC_INVALID_INPUT;
    *program = calloc(1, sizeof **program);
    if (*program != NULL)
        (*program)->source = strdup(source);
    return *program != NULL && (*program)->source != NULL ? NVRTC_DONE : NVRTC_OUT_OF_MEMORY;
}

nvrtc_result nvrtcDestroyProgram(nvrtc_program *program)
{
    free((*program)->source);
    free((*program)->binary);
    free((*program)->log);
    free(*program);
    *program = NULL;
    return NVRTC_DONE;
}

static char *read_all(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (file == NULL || fstat(fileno(file), &status) != 0)
        fake_wrong("%s cannot be read", path);
    char *text = calloc(1, (size_t)status.st_size + 1);
    *bytes = text != NULL ? fread(text, 1, (size_t)status.st_size, file) : 0;
    fclose(file);
    return text;
}

/* For each kernel of the text: a function that takes its parameters from an array, how many, its group. */
static void write_calls(FILE *file, const char *source)
{
    for (const char *at = strstr(source, KERNEL_WORD); at != NULL; at = strstr(at, KERNEL_WORD)) {
        at += strlen(KERNEL_WORD);
        int group = atoi(at), parameters = 0;
        const char *name = strchr(at, ')') + 1;
        name += strspn(name, " \n");
        int length = (int)strcspn(name, "( \n");
        const char *end = strchr(name, '{');
        for (const char *p = strstr(name, PARAMETER_WORD); p != NULL && p < end;
             p = strstr(p + 1, PARAMETER_WORD))
            parameters++;
        fprintf(
            file,
            "extern \"C\" { extern const int fake_facts_%.*s[2]; const int fake_facts_%.*s[2] = {%d, %d};\n",
            length, name, length, name, parameters, group);
        fprintf(file, "void fake_call_%.*s(unsigned char **p)\n{\n    %.*s(", length, name, length, name);
        for (int i = 0; i < parameters; i++)
            fprintf(file, "%sp[%d]", i > 0 ? ", " : "", i);
        fprintf(file, ");\n}}\n");
    }
}

static bool compile(const char *folder, const char *source)
{
    char text[512], binary[512], log[512];
    snprintf(text, sizeof text, "%s/kernels.cc", folder);
    snprintf(binary, sizeof binary, "%s/kernels.so", folder);
    snprintf(log, sizeof log, "%s/log", folder);
    FILE *file = fopen(text, "w");
    if (file == NULL)
        fake_wrong("%s cannot be written", text);
    fprintf(file, "#include \"%s\"\n#line 1 \"sigma.cu\"\n%s\n", SIGMA_FAKE_CUDA_WORDS, source);
    write_calls(file, source);
    if (fclose(file) != 0)
        fake_wrong("%s cannot be written", text);
    char words[][32] = {"c++",
                        "-std=c++17",
                        "-O1",
                        "-fPIC",
                        "-shared",
                        "-w",
                        "-ffp-contract=off",
                        "-fno-strict-aliasing",
                        "-fno-math-errno",
                        "-fmax-errors=20",
                        "-o"};
    enum { WORDS = sizeof words / sizeof *words };
    if (strlen(source) > LONG_SOURCE)
        words[2][2] = '0';
    char *arguments[WORDS + 3] = {NULL};
    for (int i = 0; i < WORDS; i++)
        arguments[i] = words[i];
    arguments[WORDS] = binary;
    arguments[WORDS + 1] = text;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child;
    int status = -1;
    if (posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ) != 0)
        fake_wrong("there is no C++ compiler (c++)");
    posix_spawn_file_actions_destroy(&actions);
    waitpid(child, &status, 0);
    return status == 0;
}

static void remove_folder(const char *folder)
{
    static const char *const names[] = {"kernels.cc", "kernels.so", "log"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

nvrtc_result nvrtcCompileProgram(nvrtc_program program, int count, const char *const *options)
{
    char folder[] = "/tmp/sigma-fake-nvrtc-XXXXXX", path[512];
    bool has_target = false;
    size_t bytes;
    for (int i = 0; i < count; i++)
        has_target = has_target || strcmp(options[i], "--gpu-architecture=sm_90") == 0;
    if (!has_target)
        fake_wrong("kernels are compiled for another device");
    if (mkdtemp(folder) == NULL)
        fake_wrong("%s cannot be made", folder);
    bool accepted = compile(folder, program->source);
    snprintf(path, sizeof path, "%s/%s", folder, accepted ? "kernels.so" : "log");
    *(accepted ? &program->binary : &program->log) = read_all(path, &bytes);
    program->bytes = accepted ? bytes : 0;
    remove_folder(folder);
    return accepted ? NVRTC_DONE : NVRTC_REFUSED;
}

nvrtc_result nvrtcGetCUBINSize(nvrtc_program program, size_t *bytes)
{
    *bytes = program->bytes;
    return NVRTC_DONE;
}

nvrtc_result nvrtcGetCUBIN(nvrtc_program program, char *binary)
{
    memcpy(binary, program->binary, program->bytes);
    return NVRTC_DONE;
}

nvrtc_result nvrtcGetPTXSize(nvrtc_program program, size_t *bytes)
{
    return nvrtcGetCUBINSize(program, bytes);
}

nvrtc_result nvrtcGetPTX(nvrtc_program program, char *text)
{
    return nvrtcGetCUBIN(program, text);
}

nvrtc_result nvrtcGetProgramLogSize(nvrtc_program program, size_t *bytes)
{
    *bytes = program->log != NULL ? strlen(program->log) + 1 : 1;
    return NVRTC_DONE;
}

nvrtc_result nvrtcGetProgramLog(nvrtc_program program, char *text)
{
    size_t bytes = program->log != NULL ? strlen(program->log) : 0;
    memcpy(text, program->log != NULL ? program->log : "", bytes + 1);
    return NVRTC_DONE;
}
