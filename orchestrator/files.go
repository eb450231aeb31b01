package orchestrator

import (
	"context"
	"fmt"
	"strings"

	"ductor/cli"
	"ductor/lang"
)

// FilePlace says where paths are looked for: the environment, the directory that relative ones begin in, and those that all
// must be inside of.
type FilePlace struct {
	Sandbox cli.Sandbox
	Dir     string
	Roots   []string
}

// OutFile is a file that is to be sent into a chat.
type OutFile struct {
	Path    string
	Caption string // below it, in plain text; empty for none
}

// ProjectFile is a file of a project as it may be shown in a chat: a text is without the secrets that are known.
type ProjectFile struct {
	Name    string
	Content []byte
	Picture bool // Telegram shows it as a picture
}

// FileEntry is a file or a directory of a project.
type FileEntry struct {
	Name string
	Dir  bool
	Size int64
}

// Bounds of what goes out; of bytes they are Telegram's.
const (
	MostFileBytes    = 50 << 20
	MostPictureBytes = 10 << 20
	MostFiles        = 20 // that one answer or one call of SendFiles brings
)

// Files gives access to the files of projects: below the roots of a place, as its environment sees them. It follows no
// link, and refuses what is no regular file, hidden, a file of secrets or ductor's own. Errors about a file are a
// *FileError. Safe for concurrent use.
type Files interface {
	// OfTurn is the place of an agent's files: the roots of projects for a turn with the rights of its chat, else the
	// directory it works in.
	OfTurn(ctx context.Context, t Turn) (FilePlace, error)
	// OfChat is the place of a user's files: the directory in which the next turn of a chat would work, the roots, and the
	// environment that the path belongs to.
	OfChat(ctx context.Context, id ConversationID, path string) (FilePlace, error)
	// Read reads a file once. One that holds secrets and is no text is refused.
	Read(ctx context.Context, at FilePlace, path string) (ProjectFile, error)
	// List lists a directory, directories first.
	List(ctx context.Context, at FilePlace, dir string) ([]FileEntry, error)
	// Write makes a file and gives its absolute path. For a path that is a directory, or empty, its name is that which is
	// given. A file that is there stays.
	Write(ctx context.Context, at FilePlace, path, name string, content []byte) (string, error)
}

// FileRefusal says why a file is neither sent nor made.
type FileRefusal string

// The refusals.
const (
	FileNotThere    FileRefusal = "not-there"
	FileOutside     FileRefusal = "outside" // of the roots
	FileHidden      FileRefusal = "hidden"
	FileLink        FileRefusal = "link"
	FileHardLink    FileRefusal = "hard-link"
	FileSpecial     FileRefusal = "special" // a device, a pipe or a socket
	FileDirectory   FileRefusal = "directory"
	FileNoFolder    FileRefusal = "no-folder"
	FileEmpty       FileRefusal = "empty"
	FileTooLarge    FileRefusal = "too-large"
	FileExists      FileRefusal = "exists"
	FileSecret      FileRefusal = "secret"      // its name says that it holds secrets, or it is ductor's own
	FileHasSecret   FileRefusal = "has-secret"  // it holds one that is known
	FileUnreachable FileRefusal = "unreachable" // its environment gives nothing; Err says why
	FileTooMany     FileRefusal = "too-many"    // more than one answer may bring
)

// FileError says why a file is neither sent nor made.
type FileError struct {
	Path string
	Why  FileRefusal
	Size int64 // of a file that is too large, in bytes
	Err  error // of FileUnreachable
}

func (e *FileError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %s", e.Path, e.Why, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Path, e.Why)
}

// Sentence says it to a user, or to an agent.
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
		FileNotThere: "files.not-there", FileOutside: "files.outside", FileHidden: "files.hidden", FileLink: "files.link", FileHardLink: "files.hard-link",
		FileSpecial: "files.special", FileDirectory: "files.directory", FileNoFolder: "files.no-folder", FileEmpty: "files.empty",
		FileExists: "files.exists", FileSecret: "files.secret", FileHasSecret: "files.has-secret",
	}[e.Why]))
}

func (e *FileError) Unwrap() error { return e.Err }

// FileSender sends files of projects into chats. Package bot implements it.
type FileSender interface {
	// SendFiles reads files of a place, each once, and stores what it read to be sent: pictures as pictures, several in a row
	// as an album. It does not wait for Telegram. A crash neither loses nor doubles what it stored. It gives what it
	// refused; key names the request, and one with a key that was stored before does nothing.
	SendFiles(ctx context.Context, to ConversationID, at FilePlace, key string, files []OutFile) (refused []*FileError, err error)
}
