package real

import "os/exec"

const (
	roleLoad    = "load"
	harnessName = "ordeal-" // prefix of the command lines of this package's processes
)

// burn keeps a CPU busy until it is killed.
func burn() {
	for n := 0; ; n++ {
		_ = n
	}
}

// helper starts a process of this package that only supports the test. end kills the process.
func helper(role string, env ...string) (end func(), err error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{harnessName + role}
	cmd.Env = append([]string{roleVar + "=" + role}, env...)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }, nil
}

// busy starts processes that each keep a CPU busy, with the same niceness as this process. end kills them.
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
