FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /app

COPY requirements.txt .
RUN pip install --no-cache-dir --disable-pip-version-check -r requirements.txt

COPY . .
# The settings want databases and a secret; collecting files uses neither.
RUN STEGA_SECRET_KEY=unused DATABASE_URL=postgresql:///unused JOBS_DATABASE_URL=postgresql:///unused \
    EVENTS_DATABASE_URL=postgresql:///unused python manage.py collectstatic --noinput \
    && useradd --system --create-home --uid 10001 stega \
    && mkdir .stega && chown stega .stega

USER 10001
EXPOSE 8000
CMD ["python", "-m", "gunicorn", "stega.wsgi", "--bind", "0.0.0.0:8000", "--threads", "8", "--no-control-socket"]
