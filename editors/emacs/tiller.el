;;; tiller.el --- Client for the coding agent Tiller, over Eglot  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Tiller authors

;; Author: The Tiller authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (eglot "1.9"))
;; Keywords: tools, convenience
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Tiller is a coding agent that runs as a language server.  Eglot alone
;; is enough to use it; this package adds a chat buffer that shows the
;; answer as it arrives, marks for the changes of the agent with commands
;; that keep or revert them, permission requests with all their options,
;; and a text for the mode line.
;;
;;     (require 'tiller)
;;     (tiller-setup)
;;
;; Then `M-x eglot' in a file of one of `tiller-modes', and `M-x tiller-send'.

;;; Code:

(require 'cl-lib)
(require 'eglot)
(require 'jsonrpc)
(require 'subr-x)
(require 'url-parse)
(require 'url-util)

(defvar eglot-confirm-server-edits)
(defvar eglot-confirm-server-initiated-edits)

(defgroup tiller nil
  "The coding agent Tiller."
  :group 'tools
  :prefix "tiller-")

(defcustom tiller-program '("tiller" "lsp")
  "Program of the server and its arguments."
  :type '(repeat string))

(defcustom tiller-modes '(python-mode sh-mode js-mode text-mode)
  "Major modes whose files Tiller serves.
One server has the files of all of them in a project.  Eglot runs one
server per buffer: Tiller replaces the server of these languages."
  :type '(repeat symbol))

(defcustom tiller-initialization-options '(:agent (:plain (:actions t)))
  "Initialization options that the server is sent."
  :type 'plist)

(defface tiller-added '((t :inherit diff-added :extend t))
  "Face for lines that the agent added.")

(defface tiller-changed '((t :inherit diff-changed :extend t))
  "Face for lines that the agent changed.")

(defface tiller-removed '((t :inherit diff-removed :extend t))
  "Face for the line below which the agent deleted lines.")

(defconst tiller--token "tiller-emacs"
  "Token of the subscription to events.")

(defconst tiller--server-cancelled -32802
  "Code of a request that is to be sent again, to another daemon.")

(defclass tiller-server (eglot-lsp-server)
  ((epoch :initform nil)
   (seq :initform 0 :documentation "Number of the last event that was handled.")
   (state :initform "starting")
   (cost :initform nil)
   (unreviewed :initform 0)
   (change-set :initform nil :documentation "Id of all changes of the session.")
   (changes :initform nil :documentation "Files with pending hunks.")
   (role :initform nil :documentation "Role of the last message in the chat buffer.")
   (item :initform nil :documentation "Item that the end of the chat buffer belongs to.")
   (shown :initform (make-hash-table :test #'equal) :documentation "Messages that were streamed.")
   (tools :initform (make-hash-table :test #'equal) :documentation "Markers of the lines of tool calls."))
  :documentation "Connection to Tiller, with the state of its session.")

;;; Connection

;;;###autoload
(defun tiller-setup ()
  "Register Tiller with Eglot, and show its state in the mode line."
  (add-to-list 'eglot-server-programs `(,tiller-modes . (tiller-server ,@tiller-program)))
  (add-to-list 'auto-mode-alist '("/\\.tiller/chat\\.md\\'" . text-mode))
  (add-to-list 'mode-line-misc-info '(:eval (tiller-status)) t)
  (add-hook 'eglot-connect-hook #'tiller--connected)
  (add-hook 'eglot-managed-mode-hook #'tiller--mark-buffer))

(cl-defmethod eglot-initialization-options ((_server tiller-server))
  "Return `tiller-initialization-options'."
  tiller-initialization-options)

(cl-defmethod eglot-client-capabilities ((_server tiller-server))
  "Add the capabilities of this package."
  (plist-put (cl-call-next-method) :experimental
             '(:agent (:v 1 :permission t :documents (:save t)))))

(defun tiller--server ()
  "Return the connection of the current buffer, else any other."
  (let ((own (or (bound-and-true-p tiller--chat-server) (eglot-current-server))))
    (or (tiller--live own)
        (cl-some (lambda (buffer) (with-current-buffer buffer (tiller--live (eglot-current-server))))
                 (buffer-list)))))

(defun tiller--live (server)
  "Return SERVER if it is a connection to Tiller that lives."
  (and server (object-of-class-p server 'tiller-server) (jsonrpc-running-p server) server))

(defun tiller--server-or-lose ()
  "Return the connection, or signal an error."
  (or (tiller--server) (user-error "Tiller does not run: M-x eglot in a file of the project")))

(defun tiller--request (server method params &optional handle)
  "Send METHOD with PARAMS to SERVER; HANDLE gets the result.
A request that the end of a daemon took with it is sent again."
  (jsonrpc-async-request
   server method (or params (make-hash-table))
   :timeout nil
   :success-fn (or handle #'ignore)
   :error-fn (lambda (error)
               (if (and (eql (plist-get error :code) tiller--server-cancelled) (not (eq method :agent/prompt)))
                   (run-at-time 0.2 nil #'tiller--request server method params handle)
                 (message "Tiller: %s" (plist-get error :message))))))

(defun tiller--connected (server)
  "Open the session of SERVER, if that is Tiller, and follow it."
  (when (tiller--live server)
    (tiller--request server :agent/session/open nil
                     (lambda (snapshot) (tiller--follow server snapshot)))))

(defun tiller--follow (server snapshot)
  "Show the session of SNAPSHOT, and subscribe to its events at SERVER."
  (let ((before (plist-get (plist-get snapshot :history) :cursor))
        (items (append (plist-get (plist-get snapshot :run) :items) nil)))
    (oset server epoch (plist-get snapshot :epoch))
    (oset server seq (plist-get snapshot :seq))
    (oset server state (plist-get snapshot :state))
    (oset server cost (plist-get (plist-get snapshot :usage) :cost))
    (oset server unreviewed (plist-get (plist-get snapshot :changes) :unreviewed))
    (tiller--request server :agent/session/read `(:before ,before :limit 100)
                     (lambda (page)
                       (tiller--fill server (append (and before (plist-get page :items)) items))
                       (tiller--fetch-changes server)
                       (tiller--subscribe server)))))

(defun tiller--subscribe (server)
  "Subscribe to the events of SERVER after the last one that was handled."
  (jsonrpc-async-request
   server :agent/subscribe
   `(:partialResultToken ,tiller--token :epoch ,(oref server epoch) :from ,(oref server seq))
   :timeout nil
   :success-fn (lambda (result)
                 (when (equal (plist-get result :reason) "lagging") (tiller--connected server)))
   :error-fn (lambda (error)
               (when (eql (plist-get error :code) tiller--server-cancelled) (tiller--connected server)))))

(cl-defmethod eglot-handle-notification ((server tiller-server) (_method (eql $/progress))
                                         &key token value &allow-other-keys)
  "Handle the frame VALUE of the subscription TOKEN of SERVER."
  (cond ((not (equal token tiller--token)) (cl-call-next-method))
        ((equal (plist-get value :kind) "agent/snapshot")
         (tiller--follow server (plist-get value :snapshot)))
        (t (mapc (lambda (event)
                   (tiller--handle server event)
                   (oset server seq (plist-get event :seq)))
                 (plist-get value :events))
           (force-mode-line-update t))))

(cl-defmethod eglot-handle-request ((_server tiller-server) (_method (eql workspace/applyEdit))
                                    &key &allow-other-keys)
  "Apply an edit without a confirmation: it is reviewed as a change."
  (let ((eglot-confirm-server-initiated-edits nil) (eglot-confirm-server-edits nil))
    (cl-call-next-method)))

(cl-defmethod eglot-handle-request ((_server tiller-server) (_method (eql agent/permission))
                                    &key title description subject options default &allow-other-keys)
  "Ask the user TITLE about SUBJECT or DESCRIPTION.
A quit answers with DEFAULT, else the answer is one of OPTIONS."
  (let* ((about (or (plist-get subject :command) description))
         (choices (mapcar (lambda (option) (cons (plist-get option :label) (plist-get option :id))) options))
         (label (condition-case nil
                    (completing-read (format "%s%s: " title (if about (concat " (" about ")") ""))
                                     choices nil t)
                  (quit nil))))
    `(:option ,(or (cdr (assoc label choices)) default))))

(cl-defmethod eglot-handle-request ((_server tiller-server) (_method (eql agent/documents/save))
                                    &key items &allow-other-keys)
  "Save the documents ITEMS that the user has not changed since."
  `(:results ,(vconcat (mapcar #'tiller--save items))))

(defun tiller--save (item)
  "Save the document of ITEM and return the outcome."
  (let* ((uri (plist-get item :uri))
         (buffer (find-buffer-visiting (tiller--path uri)))
         (saved (and buffer
                     (with-current-buffer buffer
                       (and (memql (tiller--version) (list nil (plist-get item :version)))
                            (verify-visited-file-modtime)
                            (ignore-errors (save-buffer) t))))))
    `(:uri ,uri :saved ,(if saved t :json-false)
           ,@(unless saved '(:why "the buffer was changed, or cannot be written")))))

(defun tiller--version ()
  "Return the version of the buffer that Eglot sent last; nil: unknown."
  (or (bound-and-true-p eglot--versioned-identifier) (bound-and-true-p eglot--docver)))

(defun tiller--path (uri)
  "Return the path of the file URI."
  (decode-coding-string (url-unhex-string (url-filename (url-generic-parse-url uri))) 'utf-8))

;;; Chat buffer

(defvar-local tiller--chat-server nil
  "Connection that the chat buffer shows.")

(defvar tiller-chat-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'tiller-send)
    (define-key map (kbd "C-c C-c") #'tiller-send)
    (define-key map (kbd "C-c C-k") #'tiller-stop)
    map)
  "Keymap of `tiller-chat-mode'.")

(define-derived-mode tiller-chat-mode special-mode "Tiller"
  "Major mode for the conversation with Tiller."
  (visual-line-mode))

(defun tiller--chat-buffer (server)
  "Return the chat buffer of SERVER."
  (let ((buffer (get-buffer-create (format "*tiller %s*" (jsonrpc-name server)))))
    (with-current-buffer buffer
      (unless (derived-mode-p 'tiller-chat-mode) (tiller-chat-mode))
      (setq tiller--chat-server server))
    buffer))

(defmacro tiller--in-chat (server &rest body)
  "Evaluate BODY in the chat buffer of SERVER.
Windows and point that were at its end stay there."
  (declare (indent 1) (debug t))
  `(with-current-buffer (tiller--chat-buffer ,server)
     (let ((inhibit-read-only t)
           (windows (cl-remove-if-not (lambda (window) (= (window-point window) (point-max)))
                                      (get-buffer-window-list nil nil t)))
           (is-at-end (= (point) (point-max))))
       (save-excursion ,@body)
       (when is-at-end (goto-char (point-max)))
       (dolist (window windows) (set-window-point window (point-max))))))

(defun tiller--append (server text)
  "Append TEXT to the chat buffer of SERVER."
  (tiller--in-chat server
    (goto-char (point-max))
    (insert text)))

(defun tiller--begin (server role item)
  "Begin the paragraph of ITEM of ROLE at SERVER, unless the last one is it."
  (unless (equal item (oref server item))
    (tiller--append server (if (equal role (oref server role))
                               "\n\n"
                             (format "\n\n## %s\n\n" (if (equal role "user") "You" "Tiller"))))
    (oset server role role)
    (oset server item item)))

(defun tiller--line (text)
  "Return TEXT as one line."
  (replace-regexp-in-string "[ \t]*\n[ \t\n]*" " " (or text "")))

(defun tiller--note (server text)
  "Append the line TEXT to the chat buffer of SERVER."
  (tiller--append server (concat "\n> " (tiller--line text)))
  (oset server item nil))

(defun tiller--show-tool (server event)
  "Show the tool call of EVENT at SERVER as one line."
  (let* ((item (plist-get event :item))
         (line (gethash item (oref server tools)))
         (title (tiller--line (or (plist-get event :title) (cdr line) (plist-get event :name))))
         (status (plist-get event :status))
         (text (concat "> " title (and status (concat " · " status)))))
    (unless line (tiller--begin server "assistant" item))
    (tiller--in-chat server
      (goto-char (or (car line) (point-max)))
      (let ((start (copy-marker (point))))
        (delete-region (point) (line-end-position))
        (insert text)
        (puthash item (cons start title) (oref server tools))))))

(defun tiller--show-message (server event)
  "Show the complete message of EVENT at SERVER, unless it was streamed."
  (let ((item (plist-get event :item))
        (texts (mapcar (lambda (block) (or (plist-get block :text) (format "[%s]" (plist-get block :type))))
                       (plist-get event :content))))
    (unless (or (null texts) (gethash item (oref server shown)))
      (tiller--begin server (plist-get event :role) item)
      (tiller--append server (string-join texts "\n")))
    (puthash item t (oref server shown))))

(defun tiller--show-end (server event)
  "Show how the run of EVENT at SERVER ended."
  (let ((error (plist-get event :error)))
    (tiller--note server (or (plist-get error :happened) (plist-get error :message) (plist-get event :status)))))

(defun tiller--fill (server items)
  "Show the stored ITEMS in the chat buffer of SERVER, and nothing else."
  (clrhash (oref server shown))
  (clrhash (oref server tools))
  (oset server role nil)
  (oset server item nil)
  (tiller--in-chat server (erase-buffer))
  (dolist (item items)
    (pcase (plist-get item :kind)
      ("message" (tiller--show-message server item))
      ("tool" (tiller--show-tool server item))
      ("end" (tiller--show-end server item)))))

(defun tiller--handle (server event)
  "Handle an EVENT of SERVER."
  (pcase (plist-get event :type)
    ("session.state" (oset server state (plist-get event :state)))
    ("session.usage" (oset server cost (plist-get (plist-get event :usage) :cost)))
    ("changes.updated"
     (oset server unreviewed (plist-get event :unreviewed))
     (tiller--fetch-changes server))
    ("message.delta"
     (tiller--begin server "assistant" (plist-get event :item))
     (tiller--append server (plist-get event :text))
     (puthash (plist-get event :item) t (oref server shown)))
    ("message.ended" (tiller--show-message server event))
    ((or "tool.started" "tool.running" "tool.ended") (tiller--show-tool server event))
    ("permission.requested"
     (tiller--note server (concat "waits for you: " (plist-get (plist-get event :request) :title))))
    ("notice" (tiller--note server (plist-get event :text)))
    ("run.ended" (tiller--show-end server event))))

;;; Changes

(defun tiller--fetch-changes (server)
  "Request the hunks that wait at SERVER, and mark them."
  (tiller--request server :agent/changes/list nil
                   (lambda (changes)
                     (oset server change-set (plist-get changes :id))
                     (oset server changes (append (plist-get changes :files) nil))
                     (dolist (buffer (buffer-list))
                       (with-current-buffer buffer
                         (when (and buffer-file-name (eq (eglot-current-server) server))
                           (tiller--mark-buffer)))))))

(defun tiller--mark-buffer ()
  "Mark the hunks of the agent in the current buffer."
  (remove-overlays (point-min) (point-max) 'tiller t)
  (when-let* ((server (tiller--live (eglot-current-server)))
              (name (and buffer-file-name (file-truename buffer-file-name))))
    (dolist (file (oref server changes))
      (when (equal name (file-truename (tiller--path (plist-get file :uri))))
        (mapc (lambda (hunk) (when (equal (plist-get hunk :state) "pending") (tiller--mark hunk)))
              (plist-get file :hunks))))))

(defun tiller--mark (hunk)
  "Mark HUNK in the current buffer, in its lines and in the fringe."
  (save-restriction
    (widen)
    (let* ((after (plist-get hunk :after))
           (face (cond ((string-empty-p (plist-get hunk :newText)) 'tiller-removed)
                       ((string-empty-p (plist-get hunk :oldText)) 'tiller-added)
                       (t 'tiller-changed)))
           (start (tiller--line-start (plist-get (plist-get after :start) :line)))
           (end (max start (tiller--line-start (plist-get (plist-get after :end) :line))))
           (overlay (make-overlay start end)))
      (overlay-put overlay 'tiller t)
      (overlay-put overlay 'tiller-hunk (plist-get hunk :id))
      (overlay-put overlay 'face face)
      (overlay-put overlay 'before-string
                   (propertize "!" 'display `(left-fringe exclamation-mark ,face))))))

(defun tiller--line-start (line)
  "Return the position of the start of LINE, from 0."
  (save-excursion
    (goto-char (point-min))
    (forward-line line)
    (point)))

(defun tiller--overlays (start end)
  "Return the overlays of hunks between START and END, in their order."
  (sort (cl-remove-if-not (lambda (overlay) (overlay-get overlay 'tiller)) (overlays-in start end))
        (lambda (one other) (< (overlay-start one) (overlay-start other)))))

(defun tiller--resolve (action all)
  "Accept or reject, by ACTION, the hunk in the line of point, or ALL hunks."
  (let* ((server (tiller--server-or-lose))
         (overlay (car (tiller--overlays (line-beginning-position) (1+ (line-end-position)))))
         (item (cond (all `(:changeSet ,(oref server change-set)))
                     (overlay `(:hunk ,(overlay-get overlay 'tiller-hunk)))
                     (t (user-error "No change of the agent waits in this line")))))
    (tiller--request server :agent/changes/resolve `(:items [(,@item :action ,action)])
                     (lambda (answer)
                       (let ((status (plist-get (elt (plist-get answer :results) 0) :status)))
                         (unless (equal status "done")
                           (message "Tiller: the change could not be %sed: %s" action status)))
                       (tiller--fetch-changes server)))))

;;;###autoload
(defun tiller-accept (&optional all)
  "Keep the hunk of the agent in this line; with a prefix argument ALL hunks."
  (interactive "P")
  (tiller--resolve "accept" all))

;;;###autoload
(defun tiller-reject (&optional all)
  "Revert the hunk of the agent in this line; with a prefix argument ALL hunks."
  (interactive "P")
  (tiller--resolve "reject" all))

;;;###autoload
(defun tiller-next-change ()
  "Move point to the next change of the agent."
  (interactive)
  (let ((overlay (cl-find-if (lambda (overlay) (> (overlay-start overlay) (point)))
                             (tiller--overlays (point-min) (point-max)))))
    (if overlay (goto-char (overlay-start overlay)) (user-error "No further change of the agent"))))

;;;###autoload
(defun tiller-previous-change ()
  "Move point to the previous change of the agent."
  (interactive)
  (let ((overlay (cl-find-if (lambda (overlay) (< (overlay-start overlay) (line-beginning-position)))
                             (reverse (tiller--overlays (point-min) (point-max))))))
    (if overlay (goto-char (overlay-start overlay)) (user-error "No earlier change of the agent"))))

;;; Prompts and commands

(defun tiller--selection ()
  "Return the lines of the active region as a block of a prompt, or nil."
  (when (and (use-region-p) buffer-file-name)
    (let* ((start (save-excursion (goto-char (region-beginning)) (line-beginning-position)))
           (end (save-excursion (goto-char (region-end)) (if (bolp) (point) (line-beginning-position 2))))
           (first (1- (line-number-at-pos start t)))
           (count (count-lines start end)))
      `(:type "selection" :uri ,(concat "file://" (url-encode-url buffer-file-name))
              :version ,(or (tiller--version) 0)
              :range (:start (:line ,first :character 0) :end (:line ,(+ first count) :character 0))
              :text ,(buffer-substring-no-properties start end)))))

(defun tiller--prompt (text delivery)
  "Send TEXT with DELIVERY, and the region if it is active."
  (let ((content (delq nil (list `(:type "text" :text ,text) (tiller--selection)))))
    (unless (string-blank-p text)
      (tiller--request (tiller--server-or-lose) :agent/prompt
                       `(:content ,(vconcat content) :delivery ,delivery)))))

;;;###autoload
(defun tiller-send (text)
  "Send the prompt TEXT; while a run is going on, steer it.
Lines of the active region go along."
  (interactive (list (read-string "Prompt: ")))
  (tiller--prompt text "auto"))

;;;###autoload
(defun tiller-queue (text)
  "Send the prompt TEXT when the run has ended."
  (interactive (list (read-string "Prompt for later: ")))
  (tiller--prompt text "followUp"))

;;;###autoload
(defun tiller-stop ()
  "Stop everything that is going on."
  (interactive)
  (tiller--request (tiller--server-or-lose) :agent/run/cancel '(:scope "session")))

;;;###autoload
(defun tiller-chat ()
  "Show the conversation."
  (interactive)
  (pop-to-buffer (tiller--chat-buffer (tiller--server-or-lose)))
  (goto-char (point-max)))

;;;###autoload
(defun tiller-command (name)
  "Run the command tiller.NAME of the server."
  (interactive
   (list (completing-read "Tiller: " '("changes" "compact" "mode" "model" "new" "restore" "review"
                                       "rules" "signIn" "status" "trust"))))
  (tiller--request (tiller--server-or-lose) :workspace/executeCommand
                   `(:command ,(concat "tiller." name) :arguments [])))

(defun tiller-status ()
  "Return the state of the session for the mode line, or nil."
  (when-let* ((server (tiller--live (or tiller--chat-server (eglot-current-server)))))
    (let ((cost (oref server cost))
          (state (oref server state))
          (unreviewed (oref server unreviewed)))
      (concat " Tiller: " (if (equal state "requiresAction") "waiting for you" state)
              (and cost (format " · %.2f %s" (plist-get cost :amount) (plist-get cost :currency)))
              (and (> (or unreviewed 0) 0) (format " · %d to review" unreviewed))
              " "))))

(provide 'tiller)

;;; tiller.el ends here
