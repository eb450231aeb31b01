package supervisor

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// commandVar names the program to measure as supervisor, in place of this test binary.
const commandVar = "SUPERVISOR_BENCH_COMMAND"

func benchOptions(spares int) Options {
	o := Options{Spares: spares}
	if program := os.Getenv(commandVar); program != "" {
		o.Command = []string{program, "supervise"}
	}
	return o
}

func reportMedian(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-µs")
	b.ReportMetric(float64(took[len(took)*95/100].Nanoseconds())/1000, "p95-µs")
}

// BenchmarkFirstByte is from the decision to start an agent to its first byte: started directly, and under
// a supervisor, cold and from a spare. The three take turns.
func BenchmarkFirstByte(b *testing.B) {
	spec := Spec{Path: "/bin/echo", Args: []string{"x"}, Env: os.Environ()}
	direct := func(b *testing.B) time.Duration {
		began := time.Now()
		cmd := exec.Command(spec.Path, spec.Args...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
		return took
	}
	supervised := func(root *Root) func(b *testing.B) time.Duration {
		return func(b *testing.B) time.Duration {
			if root.pool.want > 0 {
				eventually(b, "a spare", func() bool { return !root.pool.missing() })
				time.Sleep(20 * time.Millisecond) // it is started and waits, as it would between two messages
			}
			began := time.Now()
			run := start(b, root, spec)
			if _, err := run.Stdout().Read(make([]byte, 1)); err != nil {
				b.Fatal(err)
			}
			took := time.Since(began)
			<-run.Done()
			if err := run.Collect(context.Background()); err != nil {
				b.Fatal(err)
			}
			return took
		}
	}
	for name, once := range map[string]func(*testing.B) time.Duration{
		"direct": direct, "cold": supervised(openRoot(b, benchOptions(0))), "spare": supervised(openRoot(b, benchOptions(1))),
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				took = append(took, once(b))
			}
			reportMedian(b, took)
		})
	}
}

// BenchmarkLineLag is from an agent's write of a line to a client that has read it, directly and through a
// supervisor. The line is the time of the write.
func BenchmarkLineLag(b *testing.B) {
	lag := func(b *testing.B, out io.Reader) {
		lines := bufio.NewReader(out)
		var took []time.Duration
		for b.Loop() {
			line, err := lines.ReadString('\n')
			if err != nil {
				b.Fatal(err)
			}
			wrote, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			took = append(took, sinceBoot()-time.Duration(wrote))
		}
		reportMedian(b, took)
	}
	spec := helper(b, "clock")
	b.Run("direct", func(b *testing.B) {
		cmd := exec.Command(spec.Path)
		cmd.Env = spec.Env
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		lag(b, out)
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, as it should be
	})
	b.Run("supervised", func(b *testing.B) {
		run := start(b, openRoot(b, benchOptions(0)), spec)
		lag(b, run.Stdout())
	})
}

// BenchmarkLine is a line to the agent and back, through two pipes and through a supervisor.
func BenchmarkLine(b *testing.B) {
	ping := func(b *testing.B, in io.Writer, out io.Reader) {
		lines := bufio.NewReader(out)
		var took []time.Duration
		for b.Loop() {
			began := time.Now()
			if _, err := io.WriteString(in, "a line of some length, as they come\n"); err != nil {
				b.Fatal(err)
			}
			if _, err := lines.ReadString('\n'); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		reportMedian(b, took)
	}
	b.Run("direct", func(b *testing.B) {
		cmd := exec.Command("cat")
		in, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		ping(b, in, out)
		if err := in.Close(); err != nil {
			b.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("supervised", func(b *testing.B) {
		run := start(b, openRoot(b, benchOptions(0)), Spec{Path: "cat", Env: os.Environ()})
		ping(b, run.Stdin(), run.Stdout())
		b.ReportMetric(privateKB(b, run.Info().Supervisor), "private-kB")
	})
}

// BenchmarkThroughput is a megabyte of output in lines.
func BenchmarkThroughput(b *testing.B) {
	spec := helper(b, "lines", "LINES=1024")
	root := openRoot(b, benchOptions(1))
	b.SetBytes(1 << 20)
	for b.Loop() {
		run := start(b, root, spec)
		n, err := io.Copy(io.Discard, run.Stdout())
		if err != nil || n != 1<<20 {
			b.Fatal(n, err)
		}
		<-run.Done()
		if err := run.Collect(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMemory is what a supervisor costs that has an agent which says nothing.
func BenchmarkMemory(b *testing.B) {
	run := start(b, openRoot(b, benchOptions(1)), sh("sleep 60"))
	time.Sleep(2 * refillDelay) // a spare maps the same program, as the client does in earnest
	for b.Loop() {
		b.ReportMetric(privateKB(b, run.Info().Supervisor), "private-kB")
	}
}

// privateKB is the memory that is a process's alone.
func privateKB(t testing.TB, pid int) float64 {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) == 3 && (f[0] == "Private_Clean:" || f[0] == "Private_Dirty:") {
			kb, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += kb
		}
	}
	return sum
}
