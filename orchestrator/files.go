package orchestrator

import (
	"context"
	"fmt"
	"strings"

	"ductor/cli"
	"ductor/lang"
)

// FilePlace determines how paths are resolved. It has the environment, the base directory of relative paths, and the
// roots. All paths must lie inside the roots.
type FilePlace struct {
	Sandbox cli.Sandbox
	Dir     string
	Roots   []string
}

// OutFile is a file to send to a chat.
type OutFile struct {
	Path    string
	Caption string // plain text below the file; empty for none
}

// ProjectFile is a file of a project that can be sent to a chat. A text file contains no known secrets.
type ProjectFile struct {
	Name    string
	Content []byte
	Picture bool // Telegram can show the file as a picture
}

// FileEntry is a file or a directory of a project.
type FileEntry struct {
	Name string
	Dir  bool
	Size int64
}

// Limits of outgoing files. The byte limits are Telegram's.
const (
	MostFileBytes    = 50 << 20
	MostPictureBytes = 10 << 20
	MostFiles        = 20 // files in one answer or one call of SendFiles
)

// Files reads and writes files of projects in the environment of a place. All paths must lie below the roots of the
// place. Files follows no links. It returns a *FileError for hidden files, files with secrets, ductor's own files,
// everything that is not a regular file, and other errors about a file. Safe for concurrent use.
type Files interface {
	// OfTurn returns the place for the files of a turn's agent. For a turn with the rights of its chat, the roots are
	// the roots of all projects. For other turns, the only root is the working directory.
	OfTurn(ctx context.Context, t Turn) (FilePlace, error)
	// OfChat returns the place for a user's files. Relative paths start in the working directory of the chat's next
	// turn; the environment is the environment of path.
	OfChat(ctx context.Context, id ConversationID, path string) (FilePlace, error)
	// Read reads a file once. It returns an error for a binary file that contains secrets.
	Read(ctx context.Context, at FilePlace, path string) (ProjectFile, error)
	// List lists a directory, directories first.
	List(ctx context.Context, at FilePlace, dir string) ([]FileEntry, error)
	// Write creates a file and returns its absolute path. If path is empty or a directory, Write creates a file with
	// the given name there. It does not overwrite an existing file.
	Write(ctx context.Context, at FilePlace, path, name string, content []byte) (string, error)
}

// FileRefusal is the reason why ductor neither sends nor writes a file.
type FileRefusal string

// The refusals.
const (
	FileNotThere    FileRefusal = "not-there"
	FileOutside     FileRefusal = "outside" // outside of the roots
	FileHidden      FileRefusal = "hidden"
	FileLink        FileRefusal = "link"
	FileHardLink    FileRefusal = "hard-link"
	FileSpecial     FileRefusal = "special" // a device, a pipe or a socket
	FileDirectory   FileRefusal = "directory"
	FileNoFolder    FileRefusal = "no-folder"
	FileEmpty       FileRefusal = "empty"
	FileTooLarge    FileRefusal = "too-large"
	FileExists      FileRefusal = "exists"
	FileSecret      FileRefusal = "secret"      // its name is a name of files with secrets, or it belongs to ductor
	FileHasSecret   FileRefusal = "has-secret"  // the file contains a known secret
	FileUnreachable FileRefusal = "unreachable" // the environment cannot be reached; Err is the cause
	FileTooMany     FileRefusal = "too-many"    // more files than one answer may contain
)

// FileError reports why ductor neither sends nor writes a file.
type FileError struct {
	Path string
	Why  FileRefusal
	Size int64 // for FileTooLarge, in bytes
	Err  error // for FileUnreachable
}

func (e *FileError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %s", e.Path, e.Why, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Path, e.Why)
}

// Sentence explains the error to a user or an agent.
func (e *FileError) Sentence(p lang.Printer) string {
	path := cli.Shorten(strings.Join(strings.Fields(e.Path), " "), 200)
	switch e.Why {
	case FileTooLarge:
		return p.Text("files.too-large", path, p.Size(e.Size), p.Size(MostFileBytes))
	case FileTooMany:
		return p.Text("files.too-many", path, MostFiles)
	case FileUnreachable:
		return p.Text("files.unreachable", path, cli.Shorten(e.Err.Error(), 300))
	}
	return p.Text("files.refused", path, p.Text(map[FileRefusal]lang.Key{
		FileNotThere: "files.not-there", FileOutside: "files.outside", FileHidden: "files.hidden",
		FileLink: "files.link", FileHardLink: "files.hard-link",
		FileSpecial: "files.special", FileDirectory: "files.directory", FileNoFolder: "files.no-folder",
		FileEmpty:  "files.empty",
		FileExists: "files.exists", FileSecret: "files.secret", FileHasSecret: "files.has-secret",
	}[e.Why]))
}

func (e *FileError) Unwrap() error { return e.Err }

// FileSender sends files of projects into chats. Package bot implements it.
type FileSender interface {
	// SendFiles reads each file of a place once and stores the content. It sends images as pictures, and several images
	// in a row as an album. It returns the refused files and does not wait for Telegram. A crash neither loses nor
	// duplicates stored files. key identifies the request: a second call with the same key does nothing.
	SendFiles(ctx context.Context, to ConversationID, at FilePlace, key string,
		files []OutFile) (refused []*FileError, err error)
}
