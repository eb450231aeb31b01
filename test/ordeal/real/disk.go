package real

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// diskKind is the file system of ductor's state.
type diskKind string

const (
	diskOfMachine diskKind = "machine" // the file system of the temporary directory
	diskTmpfs     diskKind = "tmpfs"   // small and in memory; can get full
	diskExt4      diskKind = "ext4"    // small and on a loop device; can get full, read-only and slow
)

// disk is a file system that can be filled, frozen and made read-only.
type disk struct {
	kind    diskKind
	at      string // where it is mounted
	image   string // of ext4
	ballast *os.File
	frozen  bool
}

const diskSize = 48 << 20

// The ioctls with which fsfreeze(8) freezes and thaws a file system.
const (
	fiFreeze = 0xC0045877
	fiThaw   = 0xC0045878
	// The ioctl that cuts the power of ext4, and its flag that skips the log.
	ext4Shutdown   = 0x8004587D
	shutNoLogFlush = 2
)

// newDisk mounts a file system at a directory, which must exist.
func newDisk(kind diskKind, at, image string) (*disk, error) {
	d := &disk{kind: kind, at: at, image: image}
	switch kind {
	case diskTmpfs:
		if err := unix.Mount("none", at, "tmpfs", 0, "mode=700,size="+strconv.Itoa(diskSize)); err != nil {
			return nil, fmt.Errorf("mount a tmpfs: %w", err)
		}
	case diskExt4:
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			return nil, err
		}
		if err := os.Truncate(image, diskSize); err != nil {
			return nil, err
		}
		if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-m", "0", image).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("make a disk of ext4: %w: %s", err, out)
		}
		if err := d.mount(); err != nil {
			return nil, err
		}
		if err := os.RemoveAll(filepath.Join(at, "lost+found")); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// fill uses all space on the disk. It does not change the machine's own disk.
func (d *disk) fill() error {
	if d.kind == diskOfMachine || d.ballast != nil {
		return nil
	}
	f, err := os.OpenFile(d.ballastFile(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	d.ballast = f
	piece := make([]byte, 64<<10)
	for len(piece) > 0 {
		if _, err := f.Write(piece); errors.Is(err, unix.ENOSPC) {
			piece = piece[:len(piece)/2]
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (d *disk) ballastFile() string { return filepath.Join(d.at, "ballast") }

// clear frees the space.
func (d *disk) clear() error {
	if d.ballast == nil {
		return nil
	}
	err := errors.Join(d.ballast.Close(), os.Remove(d.ballastFile()))
	d.ballast = nil
	return err
}

// freeze blocks every write to the disk until thaw, as if the disk hangs.
func (d *disk) freeze() error { return d.control(fiFreeze, true) }

func (d *disk) thaw() error { return d.control(fiThaw, false) }

func (d *disk) control(request uint, frozen bool) error {
	if d.kind != diskExt4 || d.frozen == frozen {
		return nil
	}
	dir, err := os.Open(d.at)
	if err != nil {
		return err
	}
	defer dir.Close()
	// an error means here that the disk was mounted again
	if err := unix.IoctlSetInt(int(dir.Fd()), request, 0); err != nil &&
		!(request == fiThaw && errors.Is(err, unix.EINVAL)) {
		return fmt.Errorf("freeze or thaw the disk: %w", err)
	}
	d.frozen = frozen
	return nil
}

// shutdown discards all data that is not on the device, as a power failure does. Only ext4 supports it.
func (d *disk) shutdown() error {
	if d.kind != diskExt4 {
		return nil
	}
	if err := errors.Join(d.thaw(), d.clear()); err != nil {
		return err
	}
	dir, err := os.Open(d.at)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.IoctlSetPointerInt(int(dir.Fd()), ext4Shutdown, shutNoLogFlush); err != nil {
		return fmt.Errorf("shut the file system down: %w", err)
	}
	return nil
}

// again mounts the disk again after a shutdown. No process may use it.
func (d *disk) again() error {
	if d.kind != diskExt4 {
		return nil
	}
	if err := d.unmount(); err != nil {
		return err
	}
	if err := d.mount(); err != nil {
		return err
	}
	// The power failure may have undone clear.
	if err := os.Remove(d.ballastFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (d *disk) mount() error {
	if out, err := exec.Command("mount", "-o", "loop", d.image, d.at).CombinedOutput(); err != nil {
		return fmt.Errorf("mount the disk: %w: %s", err, out)
	}
	return nil
}

// unmount waits until this process has closed the files that it looks at meanwhile.
func (d *disk) unmount() error {
	var failure error
	late := eventually("the unmount of the disk", func() bool {
		failure = unix.Unmount(d.at, 0)
		return !errors.Is(failure, unix.EBUSY)
	})
	return errors.Join(late, failure)
}

// check checks the file system itself: ext4 must be clean after everything that happened.
func (d *disk) check() error {
	if d.kind != diskExt4 {
		return nil
	}
	if err := d.unmount(); err != nil {
		return err
	}
	out, err := exec.Command("e2fsck", "-f", "-n", d.image).CombinedOutput()
	if err != nil {
		return fmt.Errorf("e2fsck: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
