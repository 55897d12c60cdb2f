/* What a process takes for CUDA's driver library. It has the name, which is all that is looked at. */
__attribute__((visibility("default"))) int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    return (int)flags;
}
