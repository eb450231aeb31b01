package gemini

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"ductor/cli"
)

// userAuth is the way of log-in that the user chose; empty if none.
func (p *Provider) userAuth(env []string) string {
	var settings struct {
		Security struct {
			Auth struct {
				Selected string `json:"selectedType"`
			} `json:"auth"`
		} `json:"security"`
	}
	raw, err := p.opts.ReadFile(filepath.Join(home(env, cli.Variable(env, "HOME")), "settings.json"))
	if err != nil || json.Unmarshal(raw, &settings) != nil {
		return ""
	}
	return settings.Security.Auth.Selected
}

// home is where Gemini keeps what it knows, of a user whose own home is that of owner.
func home(env []string, owner string) string {
	return filepath.Join(cmp.Or(cli.Variable(env, "GEMINI_CLI_HOME"), owner), ".gemini")
}

func (p *Provider) stateDir() string {
	return cmp.Or(p.opts.StateDir, filepath.Join(os.TempDir(), fmt.Sprintf("ductor-gemini-%d", os.Getuid())))
}

// keptAt is the path of a file that is named by what is in it.
func (p *Provider) keptAt(kind, ext string, content []byte) string {
	sum := sha256.Sum256(content)
	return filepath.Join(p.stateDir(), kind+"-"+hex.EncodeToString(sum[:8])+ext)
}

// keep writes a file that is named by what is in it, unless it is there.
func (p *Provider) keep(kind, ext string, content []byte) error {
	dir := p.stateDir()
	if err := private(dir); err != nil {
		return err
	}
	path := p.keptAt(kind, ext, content)
	if have, err := os.ReadFile(path); err == nil && string(have) == string(content) {
		return nil
	}
	f, err := os.CreateTemp(dir, kind+"-*")
	if err != nil {
		return fmt.Errorf("write Gemini's %s: %w", kind, err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write Gemini's %s: %w", kind, err), os.Remove(f.Name()))
	}
	return nil
}

// private makes a directory that no other user can put files into.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make a place for Gemini's files: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the place of Gemini's files: %w", err)
	}
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !ownedByUs(info) {
		return fmt.Errorf("the place of Gemini's files, %s, is open to others", dir)
	}
	return nil
}

func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
