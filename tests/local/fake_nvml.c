// Plays NVML to the tests: HYPERTUNE_FAKE_NVML names a file with a line `used total` (MiB) for each device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned long long total, free, used;
} memory_t;

static char devices[16];
static char uuids[16][16];

int hypertune_fake_nvml(void) { return 1; }
int nvmlInit_v2(void) { return getenv("HYPERTUNE_FAKE_NVML") != NULL ? 0 : 9; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= sizeof devices) return 2;
  *device = devices + index;
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (unsigned i = 0; i < 16; ++i) {
    snprintf(uuids[i], sizeof uuids[i], "GPU-fake-%u", i);
    if (strcmp(uuid, uuids[i]) == 0) return nvmlDeviceGetHandleByIndex_v2(i, device);
  }
  return 6;
}
int nvmlDeviceGetMemoryInfo(void* device, memory_t* memory) {
  const long index = (char*)device - devices;
  FILE* file = fopen(getenv("HYPERTUNE_FAKE_NVML"), "r");
  int found = 999;
  for (long i = 0; file != NULL && i <= index; ++i) {
    unsigned long long used = 0, total = 0;
    if (fscanf(file, "%llu %llu", &used, &total) != 2) break;
    if (i < index) continue;
    memory->used = used << 20;
    memory->total = total << 20;
    memory->free = memory->total - memory->used;
    found = 0;
  }
  if (file != NULL) fclose(file);
  return found;
}
