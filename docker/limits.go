package docker

import (
	"context"

	"github.com/docker/docker/api/types/container"
)

// resources are what a container may take of the engine's machine. A default that the engine's kernel cannot enforce is
// left out; what was asked for is not.
func (e *Engine) resources(ctx context.Context, o Options) (container.Resources, error) {
	r := container.Resources{NanoCPUs: max(0, int64(o.CPUs*1e9)), Memory: max(0, o.Memory)}
	if o.PIDs > 0 {
		r.PidsLimit = &o.PIDs
	}
	if o.CPUs == 0 || o.Memory == 0 {
		ctx, cancel := e.brief(ctx)
		defer cancel()
		machine, err := e.api.Info(ctx)
		if err != nil {
			return r, e.failed("say how large its machine is", err)
		}
		if o.CPUs == 0 && machine.CPUCfsQuota {
			r.NanoCPUs = int64(max(1, machine.NCPU-1)) * 1e9
		}
		if o.Memory == 0 && machine.MemoryLimit {
			r.Memory = machine.MemTotal / 2
		}
	}
	r.MemorySwap = r.Memory
	return r, nil
}
