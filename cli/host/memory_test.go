package host

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestHostMemory(t *testing.T) {
	const mb = int64(1) << 20
	meminfo := "MemTotal:       1024000 kB\nMemFree:         100000 kB\nMemAvailable:    512000 kB\n"
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing can be read", nil, math.MaxInt64},
		{"the machine", map[string]string{"proc/meminfo": meminfo}, 300 * mb},
		{"less than a fifth is free", map[string]string{"proc/meminfo": "MemTotal: 1024000 kB\nMemAvailable: 102400 kB\n"}, -100 * mb},
		{"a control group above its own", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/user/ductor\n",
			"sys/fs/cgroup/user/ductor/memory.max": "max\n", "sys/fs/cgroup/user/ductor/memory.current": "1\n",
			"sys/fs/cgroup/user/memory.max": "104857600\n", "sys/fs/cgroup/user/memory.current": "83886080\n",
			"sys/fs/cgroup/user/memory.stat": "anon 5\ninactive_file 20971520\n",
		}, 20 * mb},
		{"a control group larger than the machine", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "9223372036854771712", "sys/fs/cgroup/memory.current": "0",
		}, 300 * mb},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range tc.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := NewMemory(root).Available(); got != tc.want {
				t.Errorf("%d MB, want %d MB", got/mb, tc.want/mb)
			}
		})
	}
}
