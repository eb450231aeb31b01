package cli

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// rest lets what the program writes pile up without waking anybody, until the next Read that finds nothing.
// Without it the kernel wakes whoever polls the pipe at every write, also when what was written before has
// not been read yet. It is called by the goroutine that reads.
func (d *drainReader) rest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file == nil || !d.exited.IsZero() {
		return
	}
	fd, err := duplicate(d.file)
	if err != nil {
		return // one that is closed needs no rest, and without descriptors all goes on as before
	}
	_ = d.file.Close()
	d.file, d.still = nil, fd
}

// endRest reads what piled up during a rest. When there is nothing, the rest is over.
func (d *drainReader) endRest(p []byte) int {
	if d.file != nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := unix.Read(d.still, p)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(d.still, p)
	}
	if n > 0 {
		d.owed = max(d.owed-n, 0)
		return n
	}
	// Empty, at its end or broken, which the file says as well.
	d.file = os.NewFile(uintptr(d.still), "pipe")
	return 0
}

// duplicate gives a second descriptor for f, which nobody polls.
func duplicate(f *os.File) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	if ctlErr := raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); ctlErr != nil {
		return 0, ctlErr
	}
	return fd, err
}
