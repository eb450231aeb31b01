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
	"path"
	"path/filepath"
	"strings"
)

// Limits of the files that are read into memory, in bytes.
const (
	maxManifest = 64 << 20
	maxOther    = 4 << 20
)

// Verify checks an archive against the checksums in its manifest. It returns the manifest, and the contents of the
// files in Contents.Files by name. If the archive is not valid, the error matches ErrDamaged or ErrForeign.
func Verify(archive string) (Manifest, map[string][]byte, error) {
	other := map[string][]byte{}
	m, err := read(archive, func(name string, _ fs.FileMode, from io.Reader) error {
		short, ok := strings.CutPrefix(name, otherPrefix)
		if !ok {
			return nil
		}
		text, err := io.ReadAll(io.LimitReader(from, maxOther))
		other[short] = text
		return err
	})
	return m, other, err
}

// read calls handle for each file of an archive, and then compares all files with the manifest.
func read(archive string, handle func(name string, mode fs.FileMode, from io.Reader) error) (m Manifest, err error) {
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
			return m, damaged(errors.New("its manifest is missing"))
		}
		if err != nil {
			return m, damaged(err)
		}
		if h.Name == manifestName {
			break
		}
		// Reject a name such as "../x", which leads out of the directory.
		local := filepath.IsLocal(h.Name) && h.Name == path.Clean(h.Name)
		if h.Typeflag != tar.TypeReg || !local || found[h.Name].Name != "" {
			return m, damaged(fmt.Errorf("it has an entry %q", h.Name))
		}
		if found[h.Name], err = readEntry(h, entries, handle); err != nil {
			return m, err
		}
	}
	if m, err = decodeManifest(entries); err != nil {
		return m, err
	}
	if _, err := io.Copy(io.Discard, zip); err != nil { // read to the end, where gzip has its checksum
		return m, damaged(err)
	}
	return m, m.compare(found)
}

// readEntry calls handle for one file. It computes the checksum of the whole file, even if handle reads only a part.
func readEntry(h *tar.Header, from io.Reader, handle func(string, fs.FileMode, io.Reader) error) (Entry, error) {
	sum := sha256.New()
	summed := &recordingReader{from: io.TeeReader(from, sum)}
	err := handle(h.Name, h.FileInfo().Mode().Perm(), summed)
	if err == nil {
		_, err = io.Copy(io.Discard, summed)
	}
	if summed.err != nil {
		err = damaged(summed.err)
	}
	return Entry{Name: h.Name, Size: h.Size, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// recordingReader records read errors. So the caller can distinguish a damaged archive from an error in writing the
// extracted file.
type recordingReader struct {
	from io.Reader
	err  error
}

func (s *recordingReader) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func decodeManifest(from io.Reader) (m Manifest, err error) {
	text, err := io.ReadAll(io.LimitReader(from, maxManifest))
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
			return damaged(fmt.Errorf("%s differs from its checksum", e.Name))
		}
	}
	if len(found) != len(m.Entries) {
		return damaged(errors.New("it contains files that its manifest does not list"))
	}
	return nil
}

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }
