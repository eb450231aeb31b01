// Package backup writes what ductor needs to go on elsewhere into one archive, while ductor runs, and puts it back: a
// compressed tar with the database, files of the state directory and a list of their checksums, which is last.
//
// What belongs to processes and containers of the machine is not in it. Keys and the configuration are in it only if the
// caller names them.
package backup

import (
	"errors"
	"time"
)

// What can be wrong with an archive; match with errors.Is.
var (
	ErrDamaged = errors.New("the archive is damaged")
	ErrForeign = errors.New("the archive was written by a newer ductor")
	ErrInUse   = errors.New("there is state already")
)

// Contents say what an archive holds. State and Database are required.
type Contents struct {
	State    string   // the state directory, absolute
	Database string   // the database's name in it
	Dirs     []string // directories in it, by name; those that are not there are passed over
	Files    []File   // files from elsewhere
	Version  string   // of the program, for the manifest
}

// File is a file that lies outside of the state directory.
type File struct {
	Name string // in the archive
	Path string // absolute
}

// Manifest is what an archive says of itself.
type Manifest struct {
	Format  int       `json:"format"`
	Version string    `json:"version"`
	Made    time.Time `json:"made"`
	State   string    `json:"state"`           // the state directory that it was made of
	Paths   []File    `json:"paths,omitempty"` // where the files from elsewhere were
	Entries []Entry   `json:"entries"`
}

// Entry is one file of an archive.
type Entry struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// format is the version of archives that this program writes. It reads none that is newer.
const format = 1

const (
	manifestName = "manifest.json" // the last file of an archive
	statePrefix  = "state/"        // begins the names of what was in the state directory
	otherPrefix  = "other/"        // begins the names of files from elsewhere
)
