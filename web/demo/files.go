package demo

import (
	"io"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"

	"ductor/internal/sim/telegram"
	"ductor/web"
)

// inlineTypes contains the content types that a browser may show. A browser must download all other files.
var inlineTypes = map[string]bool{
	"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true,
	"audio/ogg": true, "audio/mpeg": true, "audio/webm": true, "video/webm": true, "application/ogg": true,
	"audio/wave": true, "video/mp4": true,
}

// serveFile serves the file of a message. It determines the content type from the data, because the sender can choose
// any name and type.
func (p *Page) serveFile(w http.ResponseWriter, r *http.Request) {
	data, ok := p.opts.Telegram.FileData(r.URL.Query().Get("id"))
	if !ok {
		web.Fail(w, http.StatusNotFound, "this file is gone")
		return
	}
	kind := http.DetectContentType(data)
	if !inlineTypes[kind] || r.URL.Query().Has("save") {
		kind = "application/octet-stream"
		w.Header().Set("Content-Disposition", "attachment")
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // the page may have been closed
}

// serveUpload sends an uploaded file into a chat. It sends several files as an album.
func (p *Page) serveUpload(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, telegram.MaxUpload)
	if err := r.ParseMultipartForm(8 << 20); err != nil {
		web.Fail(w, http.StatusRequestEntityTooLarge, "Telegram takes files of at most 50 MB")
		return
	}
	defer r.MultipartForm.RemoveAll()
	q := actionRequest{
		Chat: telegram.ChatID(number(r, "chat")), Topic: telegram.TopicID(number(r, "topic")),
		From:    telegram.UserID(number(r, "from")),
		ReplyTo: telegram.MessageID(number(r, "replyTo")), Text: strings.TrimSpace(r.FormValue("text")),
	}
	who, err := p.actor(q)
	if err != nil {
		web.Fail(w, http.StatusNotFound, err.Error())
		return
	}
	files, err := readFiles(r.MultipartForm.File["file"])
	if err != nil || len(files) == 0 {
		web.Fail(w, http.StatusBadRequest, "the file cannot be read")
		return
	}
	opts := q.options()
	if q.Text != "" {
		opts = append(opts, telegram.WithCaption(q.Text))
	}
	sendFiles(who, r.FormValue("kind"), files, opts)
	web.Answer(w, struct{}{})
}

func number(r *http.Request, name string) int64 {
	n, _ := strconv.ParseInt(r.FormValue(name), 10, 64) // n is 0 if the value is missing
	return n
}

const maxAlbum = 10

func readFiles(headers []*multipart.FileHeader) (files []telegram.File, err error) {
	for _, h := range headers[:min(len(headers), maxAlbum)] {
		f, err := h.Open()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(f)
		f.Close()
		if err != nil {
			return nil, err
		}
		files = append(files, telegram.File{Name: h.Filename, MIME: h.Header.Get("Content-Type"), Data: data})
	}
	return files, nil
}

// sendFiles sends pictures as photos, recordings as voice messages, and other files as documents, like Telegram's apps.
func sendFiles(who actor, kind string, files []telegram.File, opts []telegram.SendOption) {
	first := files[0]
	switch {
	case kind == "voice":
		who.user.SendVoice(who.chat, first.Data, opts...)
	case len(files) > 1:
		who.user.SendAlbum(who.chat, files, opts...)
	case strings.HasPrefix(first.MIME, "image/"):
		who.user.SendPhoto(who.chat, first.Data, opts...)
	default:
		who.user.SendDocument(who.chat, first, opts...)
	}
}
