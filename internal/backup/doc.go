// Package backup writes ductor's state into one archive while ductor runs, and restores it, also on another machine.
// The archive is a compressed tar with the database, files of the state directory and, last, a manifest with their
// checksums.
//
// It does not contain anything that belongs to processes and containers of the machine. It contains keys and the
// configuration only if the caller names them.
package backup

import (
	"errors"
	"time"
)

// Errors of archives.
var (
	ErrDamaged = errors.New("the archive is damaged")
	ErrForeign = errors.New("the archive was written by a newer ductor")
	ErrInUse   = errors.New("there is state already")
)

// Contents selects the contents of an archive. State and Database are required.
type Contents struct {
	State    string   // the state directory, absolute
	Database string   // the database's name in State
	Dirs     []string // directories in State; missing ones are skipped
	Files    []File   // files outside of State
	Version  string   // of the program, for the Manifest
}

// File is a file outside of the state directory.
type File struct {
	Name string // in the archive
	Path string // absolute
}

// Manifest describes an archive.
type Manifest struct {
	Format  int       `json:"format"`
	Version string    `json:"version"`
	Made    time.Time `json:"made"`
	State   string    `json:"state"`           // the state directory at the time of the backup
	Paths   []File    `json:"paths,omitempty"` // original paths of the files in Contents.Files
	Entries []Entry   `json:"entries"`
}

// Entry is one file of an archive.
type Entry struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// format is the version of the archives that this program writes. It rejects newer ones.
const format = 1

const (
	manifestName = "manifest.json" // the last file of an archive
	statePrefix  = "state/"        // precedes names of files from the state directory
	otherPrefix  = "other/"        // precedes names of other files
)
