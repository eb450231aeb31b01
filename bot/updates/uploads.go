package updates

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"ductor/bot/tgapi"
	"ductor/internal/rooted"
	"ductor/lang"
	"ductor/orchestrator"
)

// Maximum size of a file that a bot can download: from Telegram's servers, or from a self-hosted Bot API server.
const (
	maxDownload = 20 << 20
	maxOwn      = 2000 << 20
)

// tooLarge is the error for a file that is too large. The value is the limit in bytes.
type tooLarge int64

func (n tooLarge) Error() string {
	return fmt.Errorf("fetch file: more than %d bytes", int64(n)).Error()
}

// fileError is the error for a file that could not be fetched.
type fileError struct {
	name string
	err  error
}

func (f fileError) Error() string { return f.name + ": " + f.err.Error() }
func (f fileError) Unwrap() error { return f.err }

// errNoFolder means that the folder of a conversation is not a directory, for example because an agent replaced it.
var errNoFolder = errors.New("the upload folder is a link, or no directory")

// Uploads stores files that users send. Each conversation has its own folder.
//
// Agents can write to these folders. Therefore ductor accesses the folders only through os.Root, which does not follow
// links to other places.
type Uploads struct {
	api  *tgapi.API
	root *os.Root
	dir  string // absolute path
	most int64  // maximum size of a file in bytes
}

// OpenUploads returns Uploads that stores files in dir, which it creates if necessary. maxSize is the maximum size of a
// file in bytes. If it is 0, only the limit of the Bot API applies.
func OpenUploads(dir string, maxSize int64, api *tgapi.API) (*Uploads, error) {
	given := int64(maxDownload)
	if api.Local() {
		given = maxOwn
	}
	if maxSize <= 0 || maxSize > given {
		maxSize = given
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("uploads directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make uploads directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open uploads directory: %w", err)
	}
	return &Uploads{api: api, root: root, dir: dir, most: maxSize}, nil
}

// Close implements io.Closer.
func (u *Uploads) Close() error { return u.root.Close() }

const (
	fetchTries    = 4
	fetchPatience = 5 * time.Minute
)

// fetch is like save, but retries after an error. It returns a fileError.
func (u *Uploads) fetch(ctx context.Context, in *Message) (orchestrator.Attachment, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchPatience)
	defer cancel()
	for try := 1; ; try++ {
		a, err := u.save(ctx, in)
		var refused *tgapi.AnswerError
		final := errors.As(err, new(tooLarge)) || errors.Is(err, errNoFolder) ||
			errors.As(err, &refused) && refused.Code < 500 && refused.Code != 429
		switch {
		case err == nil:
			return a, nil
		case final || try == fetchTries:
			return a, fileError{cleanName(in.sent.file.name), err}
		}
		wait := time.Duration(try*try) * time.Second
		if refused != nil {
			wait = max(wait, refused.RetryAfter)
		}
		if pause(ctx, wait) != nil {
			return a, fileError{cleanName(in.sent.file.name), err}
		}
	}
}

// Sentence returns the text that explains a fileError to the user.
func (u *Uploads) Sentence(p lang.Printer, err error) string {
	var of fileError
	if most := tooLarge(0); errors.As(err, &of) && errors.As(err, &most) {
		return p.Text("updates.file-too-large", of.name, int64(most)>>20)
	}
	return p.Text("updates.not-fetched")
}

// save downloads and stores the file of a message. A repeated call replaces the stored file. save returns tooLarge if
// the file exceeds the limit.
func (u *Uploads) save(ctx context.Context, in *Message) (orchestrator.Attachment, error) {
	f := in.sent.file
	if f.size > u.most {
		return orchestrator.Attachment{}, tooLarge(u.most)
	}
	body, err := u.open(ctx, f.id)
	if err != nil {
		return orchestrator.Attachment{}, err
	}
	defer body.Close()
	name := cleanName(f.name)
	folder, err := u.folder(in.Conversation.UploadFolder())
	if err != nil {
		return orchestrator.Attachment{}, err
	}
	defer folder.Close()
	at := strconv.Itoa(in.ID) + "_" + name
	head, err := u.write(folder, at, body)
	if err != nil {
		return orchestrator.Attachment{}, err
	}
	return describe(filepath.Join(u.dir, in.Conversation.UploadFolder(), at), name, f.mime, head), nil
}

func (u *Uploads) open(ctx context.Context, id string) (io.ReadCloser, error) {
	var file struct {
		Path string `json:"file_path"`
		Size int64  `json:"file_size"`
	}
	ask, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err := u.api.Call(ask, "getFile", map[string]string{"file_id": id}, &file)
	var refused *tgapi.AnswerError
	if errors.As(err, &refused) && strings.Contains(refused.Description, "file is too big") {
		return nil, tooLarge(min(u.most, maxDownload))
	}
	if err != nil {
		return nil, err
	}
	if file.Size > u.most {
		return nil, tooLarge(u.most)
	}
	return u.api.Fetch(ctx, file.Path)
}

// ErrNoFile is returned by FileFunc if neither the command's message nor the message to which it replies has a file.
var ErrNoFile = errors.New("there is no file")

const readPatience = time.Minute

// reader returns a FileFunc for a message. The FileFunc does not store the file on disk.
func (u *Uploads) reader(in *Message) FileFunc {
	return func(ctx context.Context) (name string, content []byte, err error) {
		f := in.sent.file
		if f == nil && in.sent.reply != nil {
			f = in.sent.reply.file
		}
		if f == nil {
			return "", nil, ErrNoFile
		}
		name = cleanName(f.name)
		if content, err = u.read(ctx, f); err != nil {
			return "", nil, fileError{name, err}
		}
		return name, content, nil
	}
}

// read downloads a file into memory. It returns tooLarge if the file exceeds the limit.
func (u *Uploads) read(ctx context.Context, f *fileRef) ([]byte, error) {
	most := min(u.most, maxDownload) // lower limit, because the file is read into memory
	if f.size > most {
		return nil, tooLarge(most)
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	body, err := u.open(ctx, f.id)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read a file: %w", tgapi.WithoutURL(err))
	case int64(len(raw)) > most:
		return nil, tooLarge(most)
	}
	return raw, nil
}

// folder opens the folder of a conversation, and creates it if necessary. It returns errNoFolder if the path is a link
// or not a directory.
func (u *Uploads) folder(name string) (*os.Root, error) {
	err := u.root.Mkdir(name, 0o700)
	if err == nil {
		err = rooted.Sync(u.root)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("make upload folder: %w", err)
	}
	named, err := u.root.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("look at upload folder: %w", err)
	}
	if !named.IsDir() {
		return nil, fmt.Errorf("%w: %s", errNoFolder, filepath.Join(u.dir, name))
	}
	folder, err := u.root.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("open upload folder: %w", err)
	}
	if opened, err := folder.Stat("."); err != nil || !os.SameFile(named, opened) { // folder was replaced after Lstat
		_ = folder.Close() // there is no written data that Close could fail to store
		return nil, fmt.Errorf("%w: %s", errNoFolder, filepath.Join(u.dir, name))
	}
	return folder, nil
}

// write stores body in a file, completely or not at all. When write returns, the file survives a power failure. write
// returns the first bytes of the file.
func (u *Uploads) write(folder *os.Root, fileName string, body io.Reader) (head []byte, err error) {
	part := fileName + ".part"
	// The agent may have created a link with this name. Remove the link, because the write would follow it.
	if err := folder.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("make room for upload: %w", err)
	}
	f, err := folder.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create upload: %w", err)
	}
	defer func() {
		if err != nil {
			_ = folder.Remove(part)
		}
	}()
	in := bufio.NewReader(io.LimitReader(body, u.most+1))
	head, _ = in.Peek(headBytes) // ignore the error, because it occurs again in Copy
	head = bytes.Clone(head)
	n, err := io.Copy(f, in)
	if err == nil && n <= u.most { // sync the file, because a turn in the database will refer to it
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("store upload: %w", tgapi.WithoutURL(err))
	case n > u.most:
		return nil, tooLarge(u.most)
	}
	if err = folder.Rename(part, fileName); err == nil {
		err = rooted.Sync(folder)
	}
	if err != nil {
		return nil, fmt.Errorf("store upload: %w", err)
	}
	return head, nil
}

// headBytes is how many bytes of a file are needed to detect the file's type.
const headBytes = 512

// Prune removes files that were stored before the given time, and returns their number.
func (u *Uploads) Prune(before time.Time) (int, error) {
	gone := 0
	err := fs.WalkDir(u.root.FS(), ".", func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil || !info.ModTime().Before(before) {
			return err
		}
		if err := u.root.Remove(at); err != nil {
			return err
		}
		gone++
		return nil
	})
	if err != nil {
		return gone, fmt.Errorf("forget old uploads: %w", err)
	}
	return gone, nil
}

// describe returns an Attachment for a file. If describe detects a type in the content, it ignores the type that the
// sender stated, because the model's API would reject a prompt with a wrong picture type.
func describe(at, name, mime string, head []byte) orchestrator.Attachment {
	found, _, _ := strings.Cut(http.DetectContentType(head), ";")
	image := pictureMIME(found)
	if image || mime == "" {
		mime = found
	}
	return orchestrator.Attachment{Path: at, Name: name, MIME: cleanMIME(mime), Image: image}
}

var notOfMIME = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9/+._-]`) })

// cleanMIME removes invalid characters from a MIME type, because the sender chose the type and the agent reads it.
func cleanMIME(mime string) string { return notOfMIME().ReplaceAllString(mime, "") }

// nameLimit is the maximum length of a file name in bytes. It leaves space for the prefix and the suffix that ductor
// adds to a name.
const nameLimit = 120

// cleanName turns a file name from the sender into a safe one: without directories, control characters, or a dot at the
// start.
func cleanName(name string) string {
	name = strings.ToValidUTF8(name, "")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || strings.ContainsRune(`<>:"|?*[]`, r) {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimRight(strings.TrimLeft(strings.TrimSpace(name), "."), ". ")
	if len(name) > nameLimit {
		ext := path.Ext(name)
		if len(ext) > 16 {
			ext = ""
		}
		stem := strings.TrimSuffix(name, ext)
		name = strings.ToValidUTF8(stem[:min(len(stem), nameLimit-len(ext))], "") + ext
	}
	if name == "" {
		return "file"
	}
	return name
}
