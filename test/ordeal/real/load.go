package real

import (
	"os/exec"

	"golang.org/x/sys/unix"
)

const (
	roleLoad    = "load"
	harnessName = "ordeal-" // begins the command lines of the harness
)

// burn keeps a processor busy until it is killed.
func burn() {
	for n := 0; ; n++ {
		_ = n
	}
}

// helper starts a helper of the harness and returns its end.
func helper(role string, nice int, env ...string) (end func(), err error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{harnessName + role}
	cmd.Env = append([]string{roleVar + "=" + role}, env...)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, cmd.Process.Pid, nice); err != nil {
		return nil, err
	}
	return func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }, nil
}

// busy loads the machine with loops until end is called.
func busy(loops, nice int) (end func(), err error) {
	var ends []func()
	end = func() {
		for _, one := range ends {
			one()
		}
	}
	for range loops {
		one, err := helper(roleLoad, nice)
		if err != nil {
			end()
			return nil, err
		}
		ends = append(ends, one)
	}
	return end, nil
}
