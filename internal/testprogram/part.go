package testprogram

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// part is a process that runs a part of the tests.
type part struct {
	args []string
	pid  int
	out  *os.File // buffer for the output; nil if this part runs all tests
}

// partsOf divides the tests among several parts. It returns a single part if args contain a flag such as -test.run or
// -test.bench; see picks.
func partsOf(args []string, processes int) (parts []*part, err error) {
	if processes == 1 || picks(args[1:]) {
		return []*part{{args: args}}, nil
	}
	listed, err := exec.Command(self, "-test.list", ".*").Output()
	if err != nil {
		return nil, err
	}
	tests := strings.Fields(string(listed))
	// Remove the flag -test.testlogfile, because the parts cannot write to the same file. Without this file, go test
	// does not cache the result.
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return strings.HasPrefix(arg, "-test.testlogfile=")
	})
	for n := range processes {
		var own []string
		for i := n; i < len(tests); i += processes {
			own = append(own, tests[i])
		}
		out, err := os.CreateTemp("", "part")
		if err != nil {
			return nil, err
		}
		if err := os.Remove(out.Name()); err != nil {
			return nil, err
		}
		parts = append(parts, &part{args: append(slices.Clone(args), "-test.run=^("+strings.Join(own, "|")+")$"),
			out: out})
	}
	return parts, nil
}

// picks reports whether args contain flags that require a single process for all tests.
func picks(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return !slices.Contains([]string{"-test.paniconexit0", "-test.timeout", "-test.v", "-test.testlogfile",
			"-test.count", "-test.short"}, name)
	})
}

// self is the path of this program. It works even if the program's directory is not readable for this user.
const self = "/proc/self/exe"

func (p *part) start() (err error) {
	out, said := uintptr(1), uintptr(2)
	if p.out != nil {
		out, said = p.out.Fd(), p.out.Fd()
	}
	p.pid, err = syscall.ForkExec(self, p.args, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, out, said}, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	return err
}

func (p *part) ended(status syscall.WaitStatus) int {
	if p.out != nil {
		size, err := p.out.Seek(0, io.SeekEnd)
		said := make([]byte, size)
		if err == nil {
			_, err = p.out.ReadAt(said, 0)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "output of a test program:", err)
		}
		// Do not print PASS or FAIL for each part. One result for all parts comes at the end.
		text := strings.TrimSuffix(strings.TrimSuffix(string(said), "PASS\n"), "FAIL\n")
		fmt.Print(strings.TrimSuffix(text, "\x16")) // go test -json marks a result with this byte
	}
	if !status.Exited() {
		fmt.Fprintln(os.Stderr, "signal:", status.Signal())
		return 1
	}
	return status.ExitStatus()
}
