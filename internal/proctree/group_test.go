package proctree

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCgroupDirs(t *testing.T) {
	const unified = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	const hybrid = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n" +
		"36 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
	const service = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/ductor.service\n"
	for name, tc := range map[string]struct {
		mounts, groups string
		want           []string
	}{
		"unified": {unified, service,
			[]string{"/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/ductor.service"}},
		"the root group": {unified, "0::/\n", []string{"/sys/fs/cgroup"}},
		"beside version 1": {hybrid, "8:pids:/\n1:name=systemd:/x\n0::/a\n",
			[]string{"/sys/fs/cgroup/unified/a"}},
		"version 1 alone": {"36 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n",
			"8:pids:/\n", nil},
		"not mounted": {"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n", "0::/a\n", nil},
		"a part is mounted": {"9 8 0:26 /a/b /mnt rw - cgroup2 none rw\n", "0::/a/b/c\n",
			[]string{"/mnt/c"}},
		"another part": {"9 8 0:26 /a/b /mnt rw - cgroup2 none rw\n", "0::/a/bc\n", nil},
		"the part that we are": {"9 8 0:26 /a/b /mnt rw - cgroup2 none rw\n", "0::/a/b\n",
			[]string{"/mnt"}},
		"mounted twice": {unified + "9 8 0:26 / /mnt rw - cgroup2 none rw\n", "0::/a\n",
			[]string{"/sys/fs/cgroup/a", "/mnt/a"}},
		"blanks": {`9 8 0:26 / /mnt/a\040b\134c rw - cgroup2 none rw`, "0::/x y\n",
			[]string{`/mnt/a b\c/x y`}},
		"outside of what the namespace shows": {unified, "0::/../other\n", nil},
		"mounted from outside":                {"9 8 0:26 /../.. /mnt rw - cgroup2 none rw\n", "0::/a\n", nil},
		"nothing":                             {"", "", nil},
	} {
		if diff := cmp.Diff(tc.want, cgroupDirs(tc.mounts, tc.groups)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func FuzzCgroupDirs(f *testing.F) {
	f.Add("9 8 0:26 /a /mnt/\\040x rw - cgroup2 none rw\n", "0::/a/b\n")
	f.Add("9 8 0:26 / \\", "0::/../b")
	f.Fuzz(func(t *testing.T, mounts, groups string) {
		for _, dir := range cgroupDirs(mounts, groups) {
			if !filepath.IsAbs(dir) {
				t.Errorf("%q", dir)
			}
		}
	})
}

func TestTheZeroCgroupIsEmpty(t *testing.T) {
	var none Group
	if none.Populated() || len(none.PIDs()) > 0 || none.Kill() == nil || none.Remove() != nil {
		t.Error("there is none, and something is in it")
	}
	gone := Group{Path: filepath.Join(t.TempDir(), "gone")}
	if _, err := gone.Open(); !errors.Is(err, fs.ErrNotExist) || gone.Populated() || gone.Remove() != nil {
		t.Errorf("%v", err)
	}
}
