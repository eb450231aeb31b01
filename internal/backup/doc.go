// Package backup writes ductor's state into an archive while ductor runs, and restores it, also on another machine. The
// archive is a compressed tar file. It contains the database, files of the state directory and, at the end, a manifest
// with their checksums.
//
// The archive contains no data of the machine's processes and containers. It contains keys and the configuration only
// if the caller lists them.
package backup

import (
	"errors"
	"time"
)

// Errors of Write, Verify and Restore.
var (
	ErrNothing = errors.New("there is nothing to back up before the first start of ductor")
	ErrDamaged = errors.New("the archive is damaged")
	ErrForeign = errors.New("the archive was written by a newer ductor")
	ErrInUse   = errors.New("there is state already")
)

type Contents struct {
	State    string   // absolute path
	Database string   // name of the database in State
	Dirs     []string // directories in State; missing ones are skipped
	Files    []File   // files outside of State
	Version  string   // version of ductor, for the Manifest
}

// File is a file outside of the state directory.
type File struct {
	Name string // name in the archive
	Path string // absolute path
}

// Manifest describes an archive.
type Manifest struct {
	Format  int       `json:"format"`
	Version string    `json:"version"`
	Made    time.Time `json:"made"`
	State   string    `json:"state"`           // path of the state directory at the time of the backup
	Paths   []File    `json:"paths,omitempty"` // original paths of the files in Contents.Files
	Entries []Entry   `json:"entries"`
}

// Entry is one file of an archive.
type Entry struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// format is the version of the archive format that this program writes. This program cannot read newer versions.
const format = 1

const (
	manifestName = "manifest.json" // the last file of an archive
	statePrefix  = "state/"
	otherPrefix  = "other/" // prefix of the files in Contents.Files
)
