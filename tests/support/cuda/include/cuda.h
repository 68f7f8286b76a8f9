/* The names of CUDA's driver that hypertune uses, by way of the runtime: see cuda_runtime.h beside this. */
#ifndef HYPERTUNE_STAND_IN_CUDA_H
#define HYPERTUNE_STAND_IN_CUDA_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudaError_enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_DEVICE = 101 } CUresult;
typedef int CUdevice;

CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active);

#ifdef __cplusplus
}
#endif
#endif
