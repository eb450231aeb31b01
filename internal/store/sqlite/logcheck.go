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

// Offsets and sizes in the log and in its index; see https://sqlite.org/walformat.html. Integers in the index have the
// machine's byte order.
const (
	walHeader      = 32
	walFrameHeader = 24
	walSummed      = 8       // number of bytes of a frame's header that the checksum of the frame includes
	shmVersion     = 3007000 // version number at the beginning of the index
	shmPageSize    = 14
	shmFrames      = 16
	shmChecksum    = 24
	shmHeader      = 48
)

var errLogLost = errors.New("the log of the database lacks data that was written to it")

// ErrLogLost means that the database lacks its last writes, because the log was lost. The database file may be intact.
// ErrLogLost wraps ErrCorrupt.
var ErrLogLost = fmt.Errorf("%w: %w", ErrCorrupt, errLogLost)

// checkLeftLog checks the log that a killed process left behind. SQLite does not notice a loss: it treats a missing log
// as copied into the database, and ignores everything after a damaged part of a log.
func checkLeftLog(path string) error {
	marker := openMark(path+openSuffix, os.O_RDONLY, syscall.LOCK_SH)
	if marker == nil {
		// Without a marker file, the database was closed properly. If the marker is locked, another process uses the
		// database.
		return nil
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
		return nil // the machine has restarted, and the log may lack unflushed writes; this is no damage
	}
	return readUnlessOpen(path, func() error {
		shm, err := os.Open(path + "-shm")
		if err != nil {
			return nil // the log cannot be checked without its index; SQLite will create a new index
		}
		defer shm.Close()
		if errors.Is(checkLog(shm, path+"-wal"), errLogLost) {
			return ErrLogLost
		}
		return nil
	})
}

// rewriteLog overwrites the log with the log's own content, and flushes it. After a failed flush, a second flush alone
// is not enough, because the kernel no longer tries to write the data. No other process may write to the log meanwhile.
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

// checkLog returns errLogLost if the log at path lacks data that is listed in its index. SQLite verifies the log's
// checksums only when it opens the log. If the disk loses data later, SQLite copies wrong data into the database.
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

// walIndex is the part of the log's index that checkLog needs.
type walIndex struct {
	frames, pageSize int
	sum              walSum // checksum of the last frame
}

func readIndex(shm io.ReaderAt) (i walIndex, err error) {
	head := make([]byte, 2*shmHeader) // the index contains two copies of its header
	if _, err := shm.ReadAt(head, 0); err != nil {
		return i, err
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if order.Uint32(head) != shmVersion {
		order = binary.BigEndian
	}
	if !bytes.Equal(head[:shmHeader], head[shmHeader:]) || order.Uint32(head) != shmVersion {
		return i, nil // a process died while writing the header; SQLite repairs the header
	}
	i.frames, i.pageSize = int(order.Uint32(head[shmFrames:])), int(order.Uint16(head[shmPageSize:]))
	if i.pageSize == 1 {
		i.pageSize = 1 << 16 // SQLite stores the page size 65536 as 1
	}
	i.sum = walSum{order.Uint32(head[shmChecksum:]), order.Uint32(head[shmChecksum+4:])}
	return i, nil
}

// walSum is the running checksum of the log, as SQLite computes it.
type walSum [2]uint32

func (s walSum) add(order binary.ByteOrder, data []byte) walSum {
	for ; len(data) >= 8; data = data[8:] {
		s[0] += order.Uint32(data) + s[1]
		s[1] += order.Uint32(data[4:]) + s[0]
	}
	return s
}
