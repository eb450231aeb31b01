package terminal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"ductor/internal/rooted"
)

// homesDir is the directory, below ductor's state directory, with one file for each home that RecordAccounts recorded.
const homesDir = "hooked-homes"

// home is the directory with the settings of an account.
type home struct {
	Agent string `json:"agent"`
	Dir   string `json:"dir"`
}

// file returns the path of the file in which ductor records the home.
func (h home) file(m Machine) string {
	sum := sha256.Sum256([]byte(h.Agent + "\x00" + h.Dir))
	return filepath.Join(m.State, homesDir, hex.EncodeToString(sum[:12])+".json")
}

func (m Machine) accountHomes() (homes []home) {
	for _, s := range allSettings() {
		for _, dir := range m.dirs(s)[1:] {
			homes = append(homes, home{s.agent, dir})
		}
	}
	return homes
}

// RecordAccounts records the homes of the configured accounts. LeaveAccounts then removes the hooks from them when the
// accounts are no longer configured.
func (m Machine) RecordAccounts() error {
	for _, h := range m.accountHomes() {
		raw, err := json.Marshal(h)
		if err == nil {
			err = rooted.ReplaceFile(h.file(m), raw, nil)
		}
		if err != nil {
			return fmt.Errorf("record the home of an account: %w", err)
		}
	}
	return nil
}

func (m Machine) recorded() (homes []home, err error) {
	entries, err := os.ReadDir(filepath.Join(m.State, homesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the homes of accounts: %w", err)
	}
	for _, e := range entries {
		var h home
		raw, err := os.ReadFile(filepath.Join(m.State, homesDir, e.Name()))
		if err != nil || json.Unmarshal(raw, &h) != nil || h.file(m) != filepath.Join(m.State, homesDir, e.Name()) {
			continue // the file is not a record, or was just removed
		}
		homes = append(homes, h)
	}
	return homes, nil
}

// LeaveAccounts removes the hooks of this ductor from the homes of accounts that are no longer configured. It also
// records the homes of the configured accounts. It returns the settings files that it has changed. If it cannot change
// a file, or if a home does not exist now (it may be on a disk that is not mounted), the next call tries again.
func (m Machine) LeaveAccounts() (changed []File, err error) {
	recorded, err := m.recorded()
	if err != nil {
		return nil, err
	}
	for _, s := range allSettings() {
		var used []string // paths of settings in use; a former account can share its settings with an account in use
		for _, dir := range m.dirs(s) {
			used = append(used, s.pathIn(dir))
		}
		for _, h := range recorded {
			if h.Agent != s.agent || slices.Contains(m.dirs(s)[1:], h.Dir) {
				continue
			}
			f := File{Agent: s.agent, Path: s.pathIn(h.Dir)}
			if f.Path == "" {
				continue
			}
			if !slices.Contains(used, f.Path) {
				if failed := m.leave(&f, s); failed != nil {
					err = errors.Join(err, failed)
					continue
				}
				if f.Hooked {
					changed = append(changed, f)
				}
			}
			err = errors.Join(err, os.Remove(h.file(m)))
		}
	}
	return changed, errors.Join(err, m.RecordAccounts())
}

// leave removes the hooks of this ductor from a settings file.
func (m Machine) leave(f *File, s settings) error {
	if err := m.edit(f, s.remove); err != nil || !f.Hooked {
		return err
	}
	return f.Write()
}
