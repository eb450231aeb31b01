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

// sources remembers what files of this machine an image is made of come to, until they change: they are asked for
// at every start of a program, and megabytes large. Safe for concurrent use.
type sources struct {
	mu      sync.Mutex
	built   known // of the files of a build: its tag
	program known // of the runner: its digest
}

// known is an answer, and the state of the files it was given for.
type known struct{ state, answer string }

// ask gives the answer for a state of the files, and finds it anew only when that changed.
func (s *sources) ask(k *known, state string, find func() (string, error)) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.state == state && k.answer != "" {
		return k.answer, nil
	}
	answer, err := find()
	if err == nil {
		*k = known{state, answer}
	}
	return answer, err
}

// baseName is the image that is asked for.
func (s *sources) baseName(o Options) (string, error) {
	if o.Build == nil {
		return o.Image, nil
	}
	state, err := o.Build.state()
	if err != nil {
		return "", err
	}
	return s.ask(&s.built, state, o.Build.tag)
}

// runner gives the digest of the program, if it runs in images of an architecture, as Docker names it.
func (s *sources) runner(o Options, architecture string) (string, error) {
	f, err := o.openRunner()
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := fits(f, architecture); err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil {
		return "", unreadable(err)
	}
	return s.ask(&s.program, fileState(o.Runner, info), func() (string, error) {
		raw, err := os.ReadFile(o.Runner)
		if err != nil {
			return "", unreadable(err)
		}
		return digest(raw), nil
	})
}

func fileState(name string, info fs.FileInfo) string {
	return fmt.Sprintf("%q %v %d %d\n", name, info.Mode(), info.Size(), info.ModTime().UnixNano())
}

// state changes with the files of a build.
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
		return "", b.unreadable(err)
	}
	return state.String(), nil
}

var errNoRunner = &Error{
	Reason: "the program ductor-runner is not there, which runs in every container",
	Fix:    "install it beside ductor, or build it: CGO_ENABLED=0 go build ./cmd/ductor-runner",
}

func unreadable(err error) error {
	return &Error{Reason: "the program ductor-runner cannot be read", Fix: err.Error(), Err: err}
}

func (o Options) makeRunner(ctx context.Context) error {
	if o.MakeRunner == nil {
		return nil
	}
	return o.MakeRunner(ctx)
}

// openRunner opens the static program.
func (o Options) openRunner() (*os.File, error) {
	f, err := os.Open(o.Runner)
	if errors.Is(err, fs.ErrNotExist) || o.Runner == "" {
		return nil, errNoRunner
	}
	if err != nil {
		return nil, unreadable(err)
	}
	return f, nil
}

// machines are the architectures, as Docker names them.
func machines() map[string]elf.Machine {
	return map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "386": elf.EM_386, "arm": elf.EM_ARM}
}

// fits says whether a runner runs in images of an architecture, as Docker names it.
func fits(program *os.File, architecture string) error {
	f, err := elf.NewFile(program)
	if err != nil {
		return &Error{Reason: "ductor-runner is no program for Linux", Fix: "build it anew: CGO_ENABLED=0 go build ./cmd/ductor-runner", Err: err}
	}
	if want, known := machines()[architecture]; known && want != f.Machine {
		return &Error{
			Reason: fmt.Sprintf("ductor-runner is for %s, the sandbox for %s", nameOf(f.Machine), architecture),
			Fix:    "build one for it: CGO_ENABLED=0 GOARCH=" + architecture + " go build ./cmd/ductor-runner",
		}
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return &Error{Reason: "ductor-runner needs libraries, which images may not have", Fix: "build it with CGO_ENABLED=0"}
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
