package docker

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// sources caches digests of the files from which images are made. Each start of a program needs the digests, and the
// files are large. Safe for concurrent use.
type sources struct {
	mu      sync.Mutex
	built   cached // tag of the image that ductor builds
	program cached // digest of ductor-runner
}

// cached is a result, and the state of the files from which it was computed.
type cached struct{ state, answer string }

// get returns the cached result if the files still have the given state. Otherwise it calls f to compute the result,
// and caches the result.
func (s *sources) get(k *cached, state string, f func() (string, error)) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.state == state && k.answer != "" {
		return k.answer, nil
	}
	answer, err := f()
	if err == nil {
		*k = cached{state, answer}
	}
	return answer, err
}

// baseName returns the name of the configured image, or of the image that ductor builds.
func (s *sources) baseName(o Options) (string, error) {
	if o.Build == nil {
		return o.Image, nil
	}
	state, err := o.Build.state()
	if err != nil {
		return "", err
	}
	return s.get(&s.built, state, o.Build.tag)
}

// runner returns the digest of ductor-runner. It returns an error if the program cannot run on the architecture; see
// checkRunner.
func (s *sources) runner(o Options, architecture string) (string, error) {
	f, err := o.openRunner()
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := checkRunner(f, architecture); err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil {
		return "", runnerError(err)
	}
	return s.get(&s.program, fileState(o.Runner, info), func() (string, error) {
		raw, err := os.ReadFile(o.Runner)
		if err != nil {
			return "", runnerError(err)
		}
		return digest(raw), nil
	})
}

func fileState(name string, info fs.FileInfo) string {
	return fmt.Sprintf("%q %v %d %d\n", name, info.Mode(), info.Size(), info.ModTime().UnixNano())
}

// state returns a text that changes whenever a file of the build changes.
func (b Build) state() (string, error) {
	var state bytes.Buffer
	if b.Dir == "" {
		return "shipped", nil
	}
	err := walk(b.Dir, func(file, _ string, info fs.FileInfo) error {
		state.WriteString(fileState(file, info))
		return nil
	})
	if err != nil {
		return "", b.filesError(err)
	}
	return state.String(), nil
}

var errNoRunner = &Error{
	Reason: "the program ductor-runner, which runs in every container, is missing",
	Fix:    "install it beside ductor, or build it: CGO_ENABLED=0 go build ./cmd/ductor-runner",
}

func runnerError(err error) error {
	return &Error{Reason: "the program ductor-runner cannot be read", Fix: err.Error(), Err: err}
}

func (o Options) makeRunner(ctx context.Context) error {
	if o.MakeRunner == nil {
		return nil
	}
	return o.MakeRunner(ctx)
}

// openRunner opens the file of ductor-runner.
func (o Options) openRunner() (*os.File, error) {
	f, err := os.Open(o.Runner)
	if errors.Is(err, fs.ErrNotExist) || o.Runner == "" {
		return nil, errNoRunner
	}
	if err != nil {
		return nil, runnerError(err)
	}
	return f, nil
}

// machines maps Docker's names of architectures to those of ELF files.
func machines() map[string]elf.Machine {
	return map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "386": elf.EM_386, "arm": elf.EM_ARM}
}

// checkRunner returns an error if the program cannot run on an architecture, or needs shared libraries. architecture is
// Docker's name. If ductor does not know the architecture, any program for Linux is accepted.
func checkRunner(program *os.File, architecture string) error {
	f, err := elf.NewFile(program)
	if err != nil {
		return &Error{Reason: "ductor-runner is not a program for Linux",
			Fix: "rebuild it: CGO_ENABLED=0 go build ./cmd/ductor-runner", Err: err}
	}
	if want, known := machines()[architecture]; known && want != f.Machine {
		return &Error{
			Reason: fmt.Sprintf("ductor-runner is for %s, the sandbox for %s", nameOf(f.Machine), architecture),
			Fix:    "build one for it: CGO_ENABLED=0 GOARCH=" + architecture + " go build ./cmd/ductor-runner",
		}
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return &Error{Reason: "ductor-runner needs libraries, which images may not have",
				Fix: "build it with CGO_ENABLED=0"}
		}
	}
	return nil
}

func nameOf(m elf.Machine) string {
	for name, machine := range machines() {
		if machine == m {
			return name
		}
	}
	return m.String()
}
