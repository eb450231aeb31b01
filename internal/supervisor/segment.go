package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// segment is a file of the journal: the output from start to end.
type segment struct {
	dir        string
	start, end int64
	damaged    bool // it was longer once
}

func (s segment) path() string {
	return filepath.Join(s.dir, fmt.Sprintf("%s%020d", journalFile, s.start))
}
func (s segment) size() int64 { return s.end - s.start }

// create makes the file of an empty segment.
func (s segment) create() (*os.File, error) {
	return os.OpenFile(s.path(), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
}

// readAt reads from an absolute offset inside the segment. Less than p, and less than there should be,
// means that somebody cut the file.
func (s segment) readAt(p []byte, offset int64) (int, error) {
	f, err := os.Open(s.path())
	if err != nil {
		return 0, err
	}
	defer f.Close()
	p = p[:min(int64(len(p)), s.end-offset)]
	n, err := f.ReadAt(p, offset-s.start)
	if n > 0 || errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// listSegments reads which segments a directory has, in order. A file that overlaps the next is cut short
// in the list; names that make no sense are reported.
func listSegments(dir string) (segs []segment, strange []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("list spool: %w", err)
	}
	for _, e := range entries {
		digits, ours := strings.CutPrefix(e.Name(), journalFile)
		if !ours {
			continue
		}
		start, err := strconv.ParseInt(digits, 10, 64)
		info, infoErr := e.Info()
		if err != nil || start < 0 || infoErr != nil || !info.Mode().IsRegular() || start+info.Size() < start {
			strange = append(strange, e.Name())
			continue
		}
		segs = append(segs, segment{dir: dir, start: start, end: start + info.Size()})
	}
	slices.SortFunc(segs, func(a, b segment) int { return int(min(max(a.start-b.start, -1), 1)) })
	for i := range segs[:max(len(segs)-1, 0)] {
		if segs[i].end > segs[i+1].start {
			if segs[i].end != segs[i+1].end { // else its tail was moved, and the supervisor died before it removed it
				strange = append(strange, filepath.Base(segs[i].path()))
			}
			segs[i].end = segs[i+1].start
		}
	}
	return segs, strange, nil
}
