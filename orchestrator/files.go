package orchestrator

import (
	"context"
	"fmt"
	"strings"

	"ductor/cli"
	"ductor/lang"
)

// FilePlace defines which files a path can refer to: the environment, the directory to which a relative path is
// relative, and the roots below which all files must be.
type FilePlace struct {
	Sandbox cli.Sandbox
	Dir     string
	Roots   []string
}

// OutFile is a file to be sent to a chat.
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
	MostFiles        = 20 // maximum number of files in one answer, or in one call of SendFiles
)

// Files reads and writes files of projects. The FilePlace defines the environment and the roots, below which all files
// must lie. Files follows no symbolic links. It returns a *FileError for hidden files, files with secrets, ductor's own
// files, everything that is not a regular file, and for other problems with a file. It is safe for concurrent use.
type Files interface {
	// OfTurn returns the place in which a turn's agent may use files. If the turn has the rights of its chat, the agent
	// may use files below the roots of all projects. Otherwise it may use only files in its working directory.
	OfTurn(ctx context.Context, t Turn) (FilePlace, error)
	// OfChat returns the place in which a user may use the file at path. A path can be relative to the working
	// directory of the chat's next turn. If the file is in the directory of a sandboxed project, the environment is
	// that sandbox. Otherwise it is this host.
	OfChat(ctx context.Context, id ConversationID, path string) (FilePlace, error)
	// Read reads a file. A binary file that contains a secret is an error.
	Read(ctx context.Context, at FilePlace, path string) (ProjectFile, error)
	// List lists the entries of a directory. Subdirectories come first.
	List(ctx context.Context, at FilePlace, dir string) ([]FileEntry, error)
	// Write creates a file and returns its absolute path. It returns an error if the file exists. If path is empty or a
	// directory, Write creates a file with the given name there.
	Write(ctx context.Context, at FilePlace, path, name string, content []byte) (string, error)
}

// FileRefusal is the reason why ductor neither sends nor writes a file.
type FileRefusal string

// FileRefusal values.
const (
	FileNotThere  FileRefusal = "not-there"
	FileOutside   FileRefusal = "outside" // outside of the roots
	FileHidden    FileRefusal = "hidden"
	FileLink      FileRefusal = "link"
	FileHardLink  FileRefusal = "hard-link"
	FileSpecial   FileRefusal = "special" // a device, a pipe or a socket
	FileDirectory FileRefusal = "directory"
	FileNoFolder  FileRefusal = "no-folder"
	FileEmpty     FileRefusal = "empty"
	FileTooLarge  FileRefusal = "too-large"
	FileExists    FileRefusal = "exists"
	// FileSecret means that files with this name usually contain secrets, or that the file belongs to ductor.
	FileSecret      FileRefusal = "secret"
	FileHasSecret   FileRefusal = "has-secret"  // the file contains a known secret
	FileUnreachable FileRefusal = "unreachable" // the environment cannot be reached; Err is the cause
	FileTooMany     FileRefusal = "too-many"    // more files than one answer may contain
)

// FileError reports why ductor refuses to send or to write a file.
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
	// SendFiles reads files and queues them for a chat. It returns one error for each file that cannot be sent. It does
	// not wait for Telegram. Images become pictures, and several images in a row become an album.
	//
	// Queued files survive a crash and are sent once. If key is the same as in an earlier call, SendFiles does nothing.
	SendFiles(ctx context.Context, to ConversationID, at FilePlace, key string,
		files []OutFile) (refused []*FileError, err error)
}
