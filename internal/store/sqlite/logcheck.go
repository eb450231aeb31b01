package sqlite

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Where things are in the log and in its index; see https://sqlite.org/walformat.html. Integers of the index are in
// the machine's own order.
const (
	walHeader      = 32
	walFrameHeader = 24
	walSummed      = 8       // bytes of a frame's header that are part of its checksum
	shmVersion     = 3007000 // at the begin of the index
	shmPageSize    = 14
	shmFrames      = 16
	shmChecksum    = 24
	shmHeader      = 48
)

// errLogLost is a log that does not hold any more what was committed to it.
var errLogLost = errors.New("the log of the database does not hold what was written to it")

// ErrLogLost is an ErrCorrupt where the database itself may be well, but is older than what was written last.
var ErrLogLost = fmt.Errorf("%w: %w", ErrCorrupt, errLogLost)

// checkLeft says whether a process that did not close the database left a log that is whole. SQLite takes a log that is gone
// for one that was folded, and drops what comes after a damaged frame.
func checkLeft(path string) error {
	marker := lockMark(path+openSuffix, os.O_RDONLY, syscall.LOCK_SH)
	if marker == nil {
		return nil // it was closed, or is in use
	}
	defer marker.Close()
	boot, err := io.ReadAll(marker)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		return ErrLogLost
	}
	if len(boot) == 0 || string(boot) != bootID() {
		return nil // the machine went down, and what was not flushed with it
	}
	return readBeside(path, func() error {
		shm, err := os.Open(path + "-shm")
		if err != nil {
			return nil // SQLite makes it anew
		}
		defer shm.Close()
		if errors.Is(checkLog(shm, path+"-wal"), errLogLost) {
			return ErrLogLost
		}
		return nil
	})
}

// rewriteLog writes the log of the database at path again as it is, and brings it to the disk: a sync alone does not bring there
// what another sync failed to. Nobody may write to the log meanwhile.
func rewriteLog(path string, sync func(*os.File) error) error {
	f, err := os.OpenFile(path+"-wal", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	part := make([]byte, 1<<20)
	for at := int64(0); err == nil; {
		var n int
		n, err = f.ReadAt(part, at)
		if _, failed := f.WriteAt(part[:n], at); failed != nil {
			return failed
		}
		at += int64(n)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return sync(f)
}

// checkLog returns errLogLost if the log at path does not hold what its index says it does. SQLite verifies checksums only as it
// opens a log: what a disk lost later it would copy into the database.
func checkLog(shm io.ReaderAt, path string) error {
	index, err := readIndex(shm)
	if err != nil || index.frames == 0 {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	header, frame := make([]byte, walHeader), make([]byte, walFrameHeader+index.pageSize)
	if _, err := io.ReadFull(r, header); err != nil {
		return fmt.Errorf("%w (%w)", errLogLost, err)
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if header[3]&1 != 0 {
		order = binary.BigEndian
	}
	sum := walSum{}.add(order, header[:24])
	for range index.frames {
		if _, err := io.ReadFull(r, frame); err != nil {
			return fmt.Errorf("%w (%w)", errLogLost, err)
		}
		sum = sum.add(order, frame[:walSummed]).add(order, frame[walFrameHeader:])
	}
	if sum != index.sum {
		return errLogLost
	}
	return nil
}

// walIndex is what the index says of the log.
type walIndex struct {
	frames, pageSize int
	sum              walSum // of the last frame
}

func readIndex(shm io.ReaderAt) (i walIndex, err error) {
	head := make([]byte, 2*shmHeader) // it is there twice
	if _, err := shm.ReadAt(head, 0); err != nil {
		return i, err
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if order.Uint32(head) != shmVersion {
		order = binary.BigEndian
	}
	if !bytes.Equal(head[:shmHeader], head[shmHeader:]) || order.Uint32(head) != shmVersion {
		return i, nil // the process died as it wrote this; SQLite makes it anew
	}
	i.frames, i.pageSize = int(order.Uint32(head[shmFrames:])), int(order.Uint16(head[shmPageSize:]))
	if i.pageSize == 1 {
		i.pageSize = 1 << 16 // which does not fit
	}
	i.sum = walSum{order.Uint32(head[shmChecksum:]), order.Uint32(head[shmChecksum+4:])}
	return i, nil
}

// walSum is a checksum under way.
type walSum [2]uint32

func (s walSum) add(order binary.ByteOrder, data []byte) walSum {
	for ; len(data) >= 8; data = data[8:] {
		s[0] += order.Uint32(data) + s[1]
		s[1] += order.Uint32(data[4:]) + s[0]
	}
	return s
}
