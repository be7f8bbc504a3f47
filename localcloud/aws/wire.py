"""AWS requests and errors on the wire.

The signature's credential scope names service and region
(https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html). Errors are rendered in the
request's protocol.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote
from uuid import uuid4
from xml.sax.saxutils import escape

from moto.core.request import Request
from moto.core.routing import get_service_router
from werkzeug.exceptions import HTTPException, NotFound

Environ = dict[str, Any]

_SCOPE = re.compile(r"Credential=([^/,\s]+)/\d{8}/([^/]+)/([^/]+)/aws4_request")
_READING = re.compile(
    r"^(Get|List|Describe|Head|Lookup|Search|Select|Query|Scan|BatchGet|Simulate|Validate|Test|Check|Preview|Estimate"
    r"|Assume|Decode|Generate(Credential|Service)|Receive)"
)
# Parameters that name instances and Auto Scaling groups; in lists a number is appended.
_NAMING = ("InstanceId", "AutoScalingGroupName")
_JSON, _QUERY, _EC2, _REST_JSON, _REST_XML, _S3 = "json", "query", "ec2", "rest-json", "rest-xml", "s3"
_PROTOCOLS = {
    "ec2": _EC2,
    "s3": _S3,
    "route53": _REST_XML,
    "cloudfront": _REST_XML,
    "iam": _QUERY,
    "sts": _QUERY,
    "sns": _QUERY,
    "autoscaling": _QUERY,
    "elasticloadbalancing": _QUERY,
    "cloudformation": _QUERY,
    "rds": _QUERY,
    "ses": _QUERY,
    "account": _REST_JSON,
    "lambda": _REST_JSON,
    "eks": _REST_JSON,
    "elasticfilesystem": _REST_JSON,
}
# Services with one endpoint for all regions: the scope's region is not where the call acts.
_GLOBAL_SERVICES = frozenset(
    {"iam", "sts", "organizations", "account", "support", "route53", "s3", "cloudfront", "budgets", "ce"}
)


@dataclass(frozen=True)
class ErrorAnswer:
    code: str
    message: str
    status: int = 400
    details: tuple[tuple[str, str], ...] = ()
    """Further members of the error's shape, such as the Reason of a ConstraintViolationException."""


@dataclass(frozen=True)
class SignedRequest:
    service: str
    action: str
    region: str
    access_key_id: str
    session_token: str
    body: bytes
    dry_run: bool
    user_agent: str = ""
    named: tuple[str, ...] = ()

    @property
    def mutating(self) -> bool:
        return not self.dry_run and _READING.match(self.action) is None

    @property
    def is_regional(self) -> bool:
        return self.service not in _GLOBAL_SERVICES


class Refusal(HTTPException):
    def __init__(self, service: str, error: ErrorAnswer) -> None:
        super().__init__()
        self.code = error.status
        body, headers = render_error(service, error)
        self.description = body.decode()
        self._headers = headers

    def get_headers(self, *_args: Any, **_kwargs: Any) -> list[tuple[str, str]]:
        return self._headers

    def get_body(self, *_args: Any, **_kwargs: Any) -> str:
        """The body; Flask calls this method if moto does not catch the exception."""
        return self.description or ""


def read_request(environ: Environ) -> SignedRequest:
    """Identify a request; its body can be read again. An unsigned request has an empty access key."""
    body = _read_body(environ)
    key, region, service, token = signature_of(environ)
    form = _form(environ, body)
    if not service:
        service = "sts" if form.get("Action", "").startswith("AssumeRoleWith") else "s3"
    return SignedRequest(
        service=service,
        action=_action(environ, service, form),
        region=region,
        access_key_id=key,
        session_token=token,
        body=body,
        dry_run=form.get("DryRun", "").lower() == "true",
        user_agent=environ.get("HTTP_USER_AGENT", ""),
        named=tuple(value for name, value in form.items() if name.startswith(_NAMING)),
    )


def protocol_of(service: str) -> str:
    return _PROTOCOLS.get(service, _JSON)


def render_error(service: str, error: ErrorAnswer) -> tuple[bytes, list[tuple[str, str]]]:
    request_id = str(uuid4())
    protocol = protocol_of(service)
    code, message = escape(error.code), escape(error.message)
    headers = [("x-amzn-RequestId", request_id)]
    if protocol in (_JSON, _REST_JSON):
        version = "1.1" if protocol == _JSON else "1.0"
        members = {"__type": error.code, "message": error.message, "Message": error.message, **dict(error.details)}
        text = json.dumps(members)
        content_type = f"application/x-amz-json-{version}" if protocol == _JSON else "application/json"
        return text.encode(), [*headers, ("Content-Type", content_type), ("x-amzn-ErrorType", error.code)]
    if protocol == _EC2:
        text = (
            f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
            f"<RequestID>{request_id}</RequestID></Response>"
        )
    elif protocol == _S3:
        text = f"<Error><Code>{code}</Code><Message>{message}</Message><RequestId>{request_id}</RequestId></Error>"
    else:
        kind = "Sender" if error.status < 500 else "Receiver"
        text = (
            f"<ErrorResponse><Error><Type>{kind}</Type><Code>{code}</Code><Message>{message}</Message></Error>"
            f"<RequestId>{request_id}</RequestId></ErrorResponse>"
        )
    return text.encode(), [*headers, ("Content-Type", "text/xml")]


def throttled(service: str) -> ErrorAnswer:
    codes = {
        "ec2": ("RequestLimitExceeded", 503),
        "s3": ("SlowDown", 503),
        "organizations": ("TooManyRequestsException", 400),
        "servicequotas": ("TooManyRequestsException", 400),
        "account": ("TooManyRequestsException", 429),
        "support": ("ThrottlingException", 400),
    }
    code, status = codes.get(service, ("Throttling", 400))
    return ErrorAnswer(code, "Rate exceeded", status)


def denied(service: str, action: str, caller: str) -> ErrorAnswer:
    message = f"User: {caller} is not authorized to perform: {service}:{action}"
    if service == "ec2":
        return ErrorAnswer("UnauthorizedOperation", f"You are not authorized to perform this operation. {message}", 403)
    if protocol_of(service) in (_JSON, _REST_JSON):
        return ErrorAnswer("AccessDeniedException", message, 403 if service == "account" else 400)
    return ErrorAnswer("AccessDenied", message, 403)


def unknown_key(service: str) -> ErrorAnswer:
    if service == "ec2":
        return ErrorAnswer("AuthFailure", "AWS was not able to validate the provided access credentials", 401)
    if service == "s3":
        return ErrorAnswer(
            "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.", 403
        )
    message = "The security token included in the request is invalid."
    if protocol_of(service) in (_JSON, _REST_JSON):
        return ErrorAnswer("UnrecognizedClientException", message, 403 if service == "account" else 400)
    return ErrorAnswer("InvalidClientTokenId", message, 403)


def expired_session(service: str) -> ErrorAnswer:
    message = "The security token included in the request is expired"
    if service == "ec2":
        return ErrorAnswer("RequestExpired", "Request has expired.", 400)
    if protocol_of(service) in (_JSON, _REST_JSON):
        return ErrorAnswer("ExpiredTokenException", message, 400)
    return ErrorAnswer("ExpiredToken", message, 403 if service != "s3" else 400)


def closed_account(service: str) -> ErrorAnswer:
    if service == "ec2":
        return ErrorAnswer("Blocked", "Your account is currently blocked. Contact AWS Support.", 403)
    if service == "s3":
        return ErrorAnswer("AccountProblem", "There is a problem with your AWS account.", 403)
    code = "AccessDeniedException" if protocol_of(service) in (_JSON, _REST_JSON) else "AccessDenied"
    return ErrorAnswer(code, "The account is closed.", 403)


def error_code_of(body: bytes, headers: list[tuple[str, str]]) -> str:
    for name, value in headers:
        if name.lower() == "x-amzn-errortype" and value:
            return value.split("#")[-1].split(":")[0]
    match = re.search(rb"<Code>([^<]+)</Code>", body[:2000]) or re.search(rb'"__type":\s*"([^"]+)"', body[:2000])
    return match.group(1).decode().split("#")[-1] if match else ""


def _read_body(environ: Environ) -> bytes:
    stream = environ["wsgi.input"]
    if environ.get("wsgi.input_terminated"):
        body: bytes = stream.read()
    else:
        length = environ.get("CONTENT_LENGTH") or "0"
        body = stream.read(int(length)) if length.isdigit() and int(length) else b""
    environ["wsgi.input"] = io.BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    return body


def signature_of(environ: Environ) -> tuple[str, str, str, str]:
    match = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    if match:
        key, region, service = match.groups()
        return key, region, service.lower(), environ.get("HTTP_X_AMZ_SECURITY_TOKEN", "")
    query = environ.get("QUERY_STRING", "")
    if "X-Amz-Credential" in query:
        values = parse_qs(query)
        scope = values["X-Amz-Credential"][0].split("/")
        if len(scope) == 5:
            return scope[0], scope[2], scope[3].lower(), values.get("X-Amz-Security-Token", [""])[0]
    return "", "us-east-1", "", ""


def _form(environ: Environ, body: bytes) -> dict[str, str]:
    if environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        return dict(parse_qsl(body.decode("utf-8", "replace")))
    query = environ.get("QUERY_STRING", "")
    return dict(parse_qsl(query)) if "Action=" in query else {}


def _action(environ: Environ, service: str, form: dict[str, str]) -> str:
    target: str = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        return target.rsplit(".", 1)[-1]
    if "Action" in form:
        return form["Action"]
    router = _router(service)
    if router is not None:
        try:
            operation, _ = router.match(Request(environ.copy()))
            return str(operation.name)
        except (NotFound, NotImplementedError):
            pass
    return f"{environ['REQUEST_METHOD']} {unquote(environ.get('PATH_INFO', '/'))}"


@cache
def _router(service: str) -> Any:
    try:
        return get_service_router(service)
    except Exception:  # botocore has no model of this signing name; the path names the service
        return None
