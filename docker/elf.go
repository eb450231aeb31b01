package docker

import (
	"bytes"
	"debug/elf"
	"fmt"
)

// fits says whether a supervisor runs in images of an architecture, as Docker names it.
func fits(program []byte, architecture string) error {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return &Error{Reason: "ductor-supervisor is no program for Linux", Fix: "build it anew: CGO_ENABLED=0 go build ./cmd/ductor-supervisor", Err: err}
	}
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "386": elf.EM_386, "arm": elf.EM_ARM}
	if want, known := machines[architecture]; known && want != f.Machine {
		return &Error{
			Reason: fmt.Sprintf("ductor-supervisor is for %s, the sandbox's image for %s", f.Machine, architecture),
			Fix:    "build one for it: CGO_ENABLED=0 GOARCH=" + architecture + " go build ./cmd/ductor-supervisor",
		}
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return &Error{Reason: "ductor-supervisor needs libraries, which images may not have", Fix: "build it with CGO_ENABLED=0"}
		}
	}
	return nil
}
