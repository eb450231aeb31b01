package docker

import (
	"archive/tar"
	"bytes"
	_ "embed" // for ductor's own Dockerfile
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

//go:embed Dockerfile
var shipped []byte

// Build describes how an engine builds an image.
type Build struct {
	// Dir is the directory with the Dockerfile, called the build context. If Dir is empty, the engine uses ductor's own
	// Dockerfile, which installs Node, git, common tools and the agents. The engine's machine then needs network access
	// during the build.
	Dir  string
	Args map[string]string // build arguments; the image stores them, so they must not be secret
	// Network is the network during the build. Empty means the engine's default.
	Network Network
}

const maxContext = 256 << 20

func (b Build) args() map[string]*string {
	args := map[string]*string{}
	for name, value := range b.Args {
		args[name] = &value
	}
	return args
}

// tag returns the image's name and tag. The tag is a digest of all files and arguments of the build.
func (b Build) tag() (string, error) {
	files, err := b.context()
	if err != nil {
		return "", err
	}
	raw, err := io.ReadAll(files)
	if err != nil {
		return "", err
	}
	parts := [][]byte{raw}
	for _, name := range slices.Sorted(maps.Keys(b.Args)) {
		parts = append(parts, []byte(name), []byte(b.Args[name]))
	}
	return builtImages + ":" + digest(parts...), nil
}

// context returns the build context as a tar archive. The archive contains no times and owners, so that equal files
// result in equal archives.
func (b Build) context() (io.Reader, error) {
	var raw bytes.Buffer
	t := tar.NewWriter(&raw)
	if b.Dir == "" {
		if err := addFile(t, "Dockerfile", 0o644, shipped); err != nil {
			return nil, err
		}
		return &raw, t.Close()
	}
	err := walk(b.Dir, func(file, name string, info fs.FileInfo) error {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if raw.Len()+len(content) > maxContext {
			return fmt.Errorf("they are more than %d MB", maxContext>>20)
		}
		return addFile(t, name, info.Mode().Perm(), content)
	})
	if err != nil {
		return nil, b.filesError(err)
	}
	return &raw, t.Close()
}

// walk calls visit for each regular file below the directory root. rel is the file's path relative to root. If root
// itself is a file, rel is ".".
func walk(root string, visit func(file, rel string, info fs.FileInfo) error) error {
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		return visit(file, filepath.ToSlash(below), info)
	})
}

func (b Build) filesError(err error) error {
	return &Error{Reason: "the files of the sandbox's image cannot be read", Fix: err.Error(), Err: err}
}

func addFile(t *tar.Writer, name string, mode fs.FileMode, content []byte) error {
	if err := t.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: int64(mode),
		Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := t.Write(content)
	return err
}
