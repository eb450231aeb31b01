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

// diskKind is the kind of file system that contains ductor's state.
type diskKind string

const (
	diskOfMachine diskKind = "machine" // the directory for temporary files of this machine
	diskTmpfs     diskKind = "tmpfs"   // a small file system in memory, which can become full
	diskExt4      diskKind = "ext4"    // a small file system on a loop device, which can become full, read-only or slow
)

// disk is a file system on which a test can cause faults.
type disk struct {
	kind    diskKind
	at      string // directory in which the disk is mounted
	image   string // file that contains an ext4 file system
	ballast *os.File
	frozen  bool
}

const diskSize = 48 << 20

// The ioctls that fsfreeze(8) uses to freeze and unfreeze a file system.
const (
	fiFreeze = 0xC0045877
	fiThaw   = 0xC0045878
	// The ioctl that shuts down an ext4 file system without writing its journal.
	ext4Shutdown   = 0x8004587D
	shutNoLogFlush = 2
)

// newDisk mounts a file system in an existing directory.
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

// fill uses up all space on a tmpfs or ext4 disk. If the disk is diskOfMachine, fill does nothing.
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

// clear frees the space that fill has used up.
func (d *disk) clear() error {
	if d.ballast == nil {
		return nil
	}
	err := errors.Join(d.ballast.Close(), os.Remove(d.ballastFile()))
	d.ballast = nil
	return err
}

// freeze blocks all writes to the disk until thaw, as if the disk hung.
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
	// EINVAL from thawing means that the disk was mounted again in the meantime.
	if err := unix.IoctlSetInt(int(dir.Fd()), request, 0); err != nil &&
		!(request == fiThaw && errors.Is(err, unix.EINVAL)) {
		return fmt.Errorf("freeze or thaw the disk: %w", err)
	}
	d.frozen = frozen
	return nil
}

// shutdown loses all data that has not reached the device, like a power failure. Only ext4 supports it.
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

// remount mounts the disk again after a shutdown. No process may use the disk at that time.
func (d *disk) remount() error {
	if d.kind != diskExt4 {
		return nil
	}
	if err := d.unmount(); err != nil {
		return err
	}
	if err := d.mount(); err != nil {
		return err
	}
	// The power failure may have restored the file that clear removed.
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

// unmount unmounts the disk. It retries while files on the disk are still open.
func (d *disk) unmount() error {
	var failure error
	late := eventually("the unmount of the disk", func() bool {
		failure = unix.Unmount(d.at, 0)
		return !errors.Is(failure, unix.EBUSY)
	})
	return errors.Join(late, failure)
}

// check returns an error if ext4 has found errors in the file system.
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
