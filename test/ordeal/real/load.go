package real

import "os/exec"

const (
	roleLoad    = "load"
	harnessName = "ordeal-" // prefix of the harness's command lines
)

// burn uses a CPU until it is killed.
func burn() {
	for n := 0; ; n++ {
		_ = n
	}
}

// helper starts a helper process of the harness. end stops it.
func helper(role string, env ...string) (end func(), err error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{harnessName + role}
	cmd.Env = append([]string{roleVar + "=" + role}, env...)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }, nil
}

// busy loads the machine with loops, with the niceness of this process, until end is called.
func busy(loops int) (end func(), err error) {
	var ends []func()
	end = func() {
		for _, one := range ends {
			one()
		}
	}
	for range loops {
		one, err := helper(roleLoad)
		if err != nil {
			end()
			return nil, err
		}
		ends = append(ends, one)
	}
	return end, nil
}
