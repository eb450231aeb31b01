package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Bounds of what is read into memory, in bytes.
const (
	mostManifest = 64 << 20
	mostOther    = 4 << 20
)

// Verify reads all of an archive and compares it with its checksums. It returns the manifest and the files that were not
// in the state directory, by name. ErrDamaged and ErrForeign say what is wrong.
func Verify(archive string) (Manifest, map[string][]byte, error) {
	other := map[string][]byte{}
	m, err := read(archive, func(name string, _ fs.FileMode, from io.Reader) error {
		short, ok := strings.CutPrefix(name, otherPrefix)
		if !ok {
			return nil
		}
		text, err := io.ReadAll(io.LimitReader(from, mostOther))
		other[short] = text
		return err
	})
	return m, other, err
}

// read passes each file of an archive to take, and then checks all of them against the manifest.
func read(archive string, take func(name string, mode fs.FileMode, from io.Reader) error) (m Manifest, err error) {
	f, err := os.Open(archive)
	if err != nil {
		return m, fmt.Errorf("read the archive: %w", err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		return m, damaged(err)
	}
	found := map[string]Entry{}
	entries := tar.NewReader(zip)
	for {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return m, damaged(errors.New("its list of files is not there"))
		}
		if err != nil {
			return m, damaged(err)
		}
		if h.Name == manifestName {
			break
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) || found[h.Name].Name != "" {
			return m, damaged(fmt.Errorf("it has an entry %q", h.Name))
		}
		if found[h.Name], err = pass(h, entries, take); err != nil {
			return m, err
		}
	}
	if m, err = manifest(entries); err != nil {
		return m, err
	}
	if _, err := io.Copy(io.Discard, zip); err != nil { // the checksum of the whole is behind the last byte
		return m, damaged(err)
	}
	return m, m.compare(found)
}

// pass passes one file to take, reads what take leaves, and sums it up.
func pass(h *tar.Header, from io.Reader, take func(string, fs.FileMode, io.Reader) error) (Entry, error) {
	sum := sha256.New()
	summed := &source{from: io.TeeReader(from, sum)}
	err := take(h.Name, h.FileInfo().Mode().Perm(), summed)
	if err == nil {
		_, err = io.Copy(io.Discard, summed)
	}
	if summed.err != nil {
		err = damaged(summed.err)
	}
	return Entry{Name: h.Name, Size: h.Size, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// source remembers why nothing more can be read, to tell it from what fails at the other end.
type source struct {
	from io.Reader
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func manifest(from io.Reader) (m Manifest, err error) {
	text, err := io.ReadAll(io.LimitReader(from, mostManifest))
	if err != nil {
		return m, damaged(err)
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&m); err != nil {
		return m, damaged(err)
	}
	if m.Format > format {
		return m, fmt.Errorf("%w (%s); install that version", ErrForeign, m.Version)
	}
	return m, nil
}

func (m Manifest) compare(found map[string]Entry) error {
	for _, e := range m.Entries {
		if found[e.Name] != e {
			return damaged(fmt.Errorf("%s is not what was backed up", e.Name))
		}
	}
	if len(found) != len(m.Entries) {
		return damaged(errors.New("it holds files that its list does not name"))
	}
	return nil
}

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }
