package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/spf13/cobra"

	"ductor/internal/config"
	"ductor/internal/sim/agent"
)

// The commands that bench starts.
const (
	benchAgentName  = "bench-agent"
	profiledRunName = "bench-run"
)

// benchAgentCommand is the scripted agent that notes when it writes which delta.
func benchAgentCommand() *cobra.Command {
	return &cobra.Command{
		Use: benchAgentName + " STAMPS [ARG ...]", Short: "Be the scripted agent of the benchmarks", Hidden: true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("say where to write the stamps")
			}
			f, err := os.OpenFile(args[0], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return fmt.Errorf("open stamps: %w", err)
			}
			args[0] = agent.Claude
			os.Exit(agent.Main(args, os.Stdin, stamping{os.Stdout, f}, os.Stderr, os.Environ()))
			return nil
		},
	}
}

// stamping notes the time of every line with a delta of text, just before it is written.
type stamping struct{ to, stamps io.Writer }

func (s stamping) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"text_delta"`)) {
		stamp := binary.LittleEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))
		if _, err := s.stamps.Write(stamp); err != nil {
			return 0, err
		}
	}
	return s.to.Write(p)
}

// written reads the stamps from the n-th on.
func (s *site) written(n int) ([]time.Time, error) {
	b, err := os.ReadFile(s.stamps)
	if err != nil {
		return nil, fmt.Errorf("read stamps: %w", err)
	}
	var all []time.Time
	for b = b[min(8*n, len(b)):]; len(b) >= 8; b = b[8:] {
		all = append(all, time.Unix(0, int64(binary.LittleEndian.Uint64(b))))
	}
	return all, nil
}

// profiledRunCommand is `ductor run` with profiles of its whole life.
func profiledRunCommand(env config.Environment) *cobra.Command {
	var from *source
	cmd := &cobra.Command{
		Use: profiledRunName + " FILES", Short: "Serve and write profiles", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := from.load()
			if err != nil {
				return err
			}
			cpu, err := os.Create(args[0] + ".cpu")
			if err != nil {
				return err
			}
			defer cpu.Close()
			runtime.MemProfileRate = 4 << 10
			if err := pprof.StartCPUProfile(cpu); err != nil {
				return err
			}
			defer pprof.StopCPUProfile()
			err = serve(cmd.Context(), cfg, cmd.ErrOrStderr())
			heap, heapErr := os.Create(args[0] + ".heap")
			if heapErr != nil {
				return heapErr
			}
			defer heap.Close()
			if heapErr := pprof.Lookup("allocs").WriteTo(heap, 0); heapErr != nil {
				return heapErr
			}
			return err
		},
	}
	from = sourceOf(cmd, env)
	return cmd
}
